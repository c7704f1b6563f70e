// SPDX-License-Identifier: Apache-2.0
// The control plane's messages as tables for people.
#ifndef HAWSER_TOOLS_ADMIN_TEXT_H_
#define HAWSER_TOOLS_ADMIN_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hawser/admin.pb.h"
#include "wire/status.h"

namespace hawser::tools {

namespace pb = ::hawser::admin::v1;

/// "0", "17 B", "4.0 KiB", "1.5 GiB".
std::string BytesText(uint64_t bytes);
/// "1.5 ms", "12 s", "3h07m", "2d04h".
std::string DurationText(uint64_t ns);
/// "25%", "12.5%" of 1,000,000 ppm.
std::string PercentText(uint64_t ppm);
/// "25", "12.5%" as ppm. kInvalid when it is no percentage from 0 to 100.
wire::Result<uint32_t> ParsePercent(std::string_view text);

/// Columns as wide as they need to be, numbers to the right; the first row is the heading. Widths count characters.
class Table {
 public:
  /// `left`: the columns that are text.
  explicit Table(std::vector<std::string> heading, std::vector<bool> left) : left_(std::move(left)) {
    rows_.push_back(std::move(heading));
  }
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string Text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<bool> left_;
};

/// The name, what else there is, and the latest ejection if there was one.
std::string PolicyText(const pb::Policy& policy);
std::string TenantsText(const pb::ListTenantsResponse& tenants);
std::string SessionsText(const pb::ListSessionsResponse& sessions);

/// `hawser top`: rates and shares are those between the two snapshots; without `before` they are "-".
/// At most `rows` lines, each at most `columns` characters; 0: any.
std::string TopText(const pb::Snapshot& now, const pb::Snapshot* before, const std::string& where, size_t rows,
                    size_t columns);

}  // namespace hawser::tools

#endif  // HAWSER_TOOLS_ADMIN_TEXT_H_
