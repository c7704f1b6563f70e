// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/mirror.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "interposer/cuda/transfer.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace hawser::cu {
namespace {

constexpr uint64_t kPage = 4096;
/// Runs of changed bytes are found in such steps. What is between them in a step travels as well: where the other side
/// may have changed it, not more than a word.
constexpr uint64_t kBlock = 64, kWord = 4;

void* Pointer(uint64_t address) { return reinterpret_cast<void*>(address); }

uint64_t RoundUp(uint64_t size) { return (size + kPage - 1) / kPage * kPage; }

/// Memory of this process at that address, where nothing is but what keeps the place free. False: something is.
bool ShowPages(uint64_t address, uint64_t size) {
  const int place = Client::Get().IsKept(address, size) ? MAP_FIXED : MAP_FIXED_NOREPLACE;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | place;
  void* got = ::mmap(Pointer(address), size, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (got == Pointer(address)) return true;
  if (got != MAP_FAILED) ::munmap(got, size);
  return false;
}

void HidePages(uint64_t address, uint64_t size) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  if (Client::Get().IsKept(address, size)) {
    (void)::mmap(Pointer(address), size, PROT_NONE, kFlags, -1, 0);
  } else {
    ::munmap(Pointer(address), size);
  }
}

/// Memory of the system, zero.
class Pages {
 public:
  explicit Pages(uint64_t size) : size_(size) {
    void* got = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got != MAP_FAILED) data_ = static_cast<std::byte*>(got);
  }
  ~Pages() {
    if (data_ != nullptr) ::munmap(data_, size_);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  std::byte* data() const { return data_; }

 private:
  const uint64_t size_;
  std::byte* data_ = nullptr;
};

/// Calls visit(offset, size) for each run of bytes in which `a` and `b` differ, in order; the first one lies at that
/// address in the program's eyes. What is in them may change meanwhile: the host writes what is attached to a stream
/// while other streams' commands look at it here, too.
template <uint64_t kStep, typename Visit>
CUresult ForChanges(uint64_t address, const std::byte* a, const std::byte* b, uint64_t size, Visit visit) {
  uint64_t begin = size;  // Of the run; size: there is none.
  uint64_t end = 0;
  const auto finish = [&]() -> CUresult {
    if (begin == size) return CUDA_SUCCESS;
    while (begin < end && a[begin] == b[begin]) ++begin;
    while (begin < end && a[end - 1] == b[end - 1]) --end;
    const CUresult error = begin < end ? visit(begin, end - begin) : CUDA_SUCCESS;
    begin = size;
    return error;
  };
  for (uint64_t page = 0; page < size; page += kPage) {
    const uint64_t page_size = std::min(kPage, size - page);
    if (std::memcmp(a + page, b + page, page_size) == 0) {
      if (const CUresult error = finish(); error != CUDA_SUCCESS) return error;
      continue;
    }
    for (uint64_t at = page, next = 0; at < page + page_size; at = next) {
      next = std::min(at + kStep - (address + at) % kStep, page + page_size);
      const bool whole = next - at == kStep;  // Nearly always, and then no call.
      if ((whole ? std::memcmp(a + at, b + at, kStep) : std::memcmp(a + at, b + at, next - at)) != 0) {
        if (begin == size) begin = at;
        end = next;
      } else if (const CUresult error = finish(); error != CUDA_SUCCESS) {
        return error;
      }
    }
  }
  return finish();
}

}  // namespace

struct Mirrors::Mirror {
  explicit Mirror(const MirrorRange& what) : range(what), both(what.size) {}
  std::byte* host() const { return static_cast<std::byte*>(Pointer(range.host)); }
  /// Attached to a stream that who waits for this one has not waited for.
  bool IsElsewhere(const CUstream_st* stream) const {
    if (attached_to == nullptr || attached_to == stream) return false;
    if (CheckObject(attached_to, Kind::kStream) != CUDA_SUCCESS) return false;  // With its end it is everybody's.
    return stream != stream->context->legacy || !attached_to->blocking();
  }

  MirrorRange range;
  Pages both;          ///< What host and device last had.
  bool fresh = false;  ///< The device has nothing of it yet.
  bool managed = false;
  bool unseen = false;                 ///< The host may have written when kernels ran already.
  CUstream_st* attached_to = nullptr;  ///< Null: to none, or to all.
};

Mirrors& Mirrors::Get() {
  static auto* mirrors = new Mirrors;
  return *mirrors;
}

CUresult Mirrors::AddManaged(const MirrorRange& range) {
  std::lock_guard lock(mutex_);
  if (mirrors_.count(range.host) != 0) return CUDA_SUCCESS;
  auto mirror = std::make_unique<Mirror>(range);
  if (mirror->both.data() == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  if (!MapPages(range)) return CUDA_ERROR_NOT_SUPPORTED;
  mirror->managed = true;
  // A variable has its value; new memory gets one.
  const CUresult error = range.allocation != 0 ? Clear(*mirror) : Fetch(*mirror);
  if (error != CUDA_SUCCESS) {
    UnmapPages(range);
    return error;
  }
  mirrors_[range.host] = std::move(mirror);
  any_.store(true, std::memory_order_release);
  return CUDA_SUCCESS;
}

CUresult Mirrors::AddHost(const MirrorRange& range) {
  std::lock_guard lock(mutex_);
  auto mirror = std::make_unique<Mirror>(range);
  if (mirror->both.data() == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  mirror->fresh = true;
  mirrors_[range.host] = std::move(mirror);
  any_.store(true, std::memory_order_release);
  return CUDA_SUCCESS;
}

bool Mirrors::Remove(uint64_t host, MirrorRange* removed) {
  if (!any()) return false;
  std::lock_guard lock(mutex_);
  const auto found = mirrors_.find(host);
  if (found == mirrors_.end()) return false;
  *removed = found->second->range;
  if (found->second->managed) UnmapPages(*removed);
  mirrors_.erase(found);
  any_.store(!mirrors_.empty(), std::memory_order_release);
  return true;
}

void Mirrors::ForgetContext(CUctx_st* context) {
  std::lock_guard lock(mutex_);
  for (auto at = mirrors_.begin(); at != mirrors_.end();) {
    const MirrorRange& range = at->second->range;
    if (range.context != context) {
      ++at;
      continue;
    }
    if (at->second->managed) UnmapPages(range);
    at = mirrors_.erase(at);
  }
  streams_.erase(context);
  std::erase_if(busy_, [context](const auto& entry) { return entry.second.context == context; });
  any_.store(!mirrors_.empty(), std::memory_order_release);
}

void Mirrors::Attach(uint64_t address, CUstream_st* stream) {
  if (!any()) return;
  std::lock_guard lock(mutex_);
  auto at = mirrors_.upper_bound(address);
  if (at == mirrors_.begin()) return;
  Mirror& mirror = *(--at)->second;
  if (!mirror.managed || address - mirror.range.host >= mirror.range.size) return;
  mirror.attached_to = stream;
  mirror.unseen = true;
}

uint64_t Mirrors::DeviceAddress(const void* host, uint64_t size) {
  if (!any()) return 0;
  std::lock_guard lock(mutex_);
  const auto address = reinterpret_cast<uint64_t>(host);
  auto at = mirrors_.upper_bound(address);
  if (at == mirrors_.begin()) return 0;
  const MirrorRange& range = (--at)->second->range;
  const uint64_t offset = address - range.host;
  return offset < range.size && size <= range.size - offset ? range.device + offset : 0;
}

CUresult Mirrors::OwnStream(CUctx_st* context, CUstream_st** stream) {
  CUstream_st*& own = streams_[context];
  if (own == nullptr) {
    if (const CUresult error = MakeStream(context, CU_STREAM_NON_BLOCKING, 0, &own, /*ours=*/true);
        error != CUDA_SUCCESS) {
      streams_.erase(context);
      return error;
    }
  }
  *stream = own;
  return CUDA_SUCCESS;
}

CUresult Mirrors::Send(Mirror& mirror, CUstream_st* by) {
  StreamCommand command;
  command.On(by);
  const auto write = [&](uint64_t offset, uint64_t size) {
    // From the copy, which does not change under way.
    std::memcpy(mirror.both.data() + offset, mirror.host() + offset, size);
    cuda::Write message;
    message.address = mirror.range.device + offset;
    message.size = size;
    return SendWrite(command, message, HostRegion::Linear(mirror.both.data() + offset, size));
  };
  if (mirror.fresh) {
    mirror.fresh = false;
    return write(0, mirror.range.size);
  }
  const MirrorRange& range = mirror.range;
  // What nobody has waited for may have written beside what the host did.
  return busy_.empty() ? ForChanges<kBlock>(range.host, mirror.host(), mirror.both.data(), range.size, write)
                       : ForChanges<kWord>(range.host, mirror.host(), mirror.both.data(), range.size, write);
}

void Mirrors::NoteCommand(CUstream_st* stream) {
  std::lock_guard lock(mutex_);
  busy_[stream] = {stream->context, commands_.fetch_add(1, std::memory_order_acq_rel) + 1};
}

CUresult Mirrors::Push(CUstream_st* stream, bool kernels) {
  std::lock_guard lock(mutex_);
  if (stream != nullptr && stream->capturing.load(std::memory_order_relaxed)) {
    return CUDA_SUCCESS;  // When the graph is launched.
  }
  // While kernels run, the host may not touch managed memory: there is nothing new in it. While data is copied it may,
  // and what is attached to one stream it may touch while kernels run in others; a function may, what it is ordered
  // with.
  const bool look_at_all = host_may_write_ || stream == nullptr;
  if (kernels) host_may_write_ = false;
  CUresult error = CUDA_SUCCESS;
  std::vector<CUstream_st*> used;
  for (const auto& [host, mirror] : mirrors_) {
    const bool own_kernels = mirror->attached_to == stream && mirror->attached_to != nullptr;
    if (mirror->managed && !look_at_all && !own_kernels && !mirror->unseen) continue;
    mirror->unseen = false;
    CUctx_st* context = mirror->range.context;
    if (context->fault.load(std::memory_order_relaxed) != 0) continue;
    CUstream_st* own = nullptr;
    if (error = OwnStream(context, &own); error != CUDA_SUCCESS) return error;
    const uint64_t before = own->submitted.load(std::memory_order_relaxed);
    if (error = Send(*mirror, own); error != CUDA_SUCCESS) return error;
    const bool sent = own->submitted.load(std::memory_order_relaxed) != before;
    if (sent && std::find(used.begin(), used.end(), own) == used.end()) used.push_back(own);
  }
  // The work may be in any stream: it begins when the data is there.
  for (CUstream_st* own : used) {
    if (error = AwaitStream(own); error != CUDA_SUCCESS) return error;
  }
  return CUDA_SUCCESS;
}

CUresult Mirrors::Fetch(Mirror& mirror) {
  CUstream_st* own = nullptr;
  if (const CUresult error = OwnStream(mirror.range.context, &own); error != CUDA_SUCCESS) return error;
  const Pages now(mirror.range.size);
  if (now.data() == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  StreamCommand command;
  command.On(own);
  cuda::Read message;
  message.address = mirror.range.device;
  message.size = mirror.range.size;
  const HostRegion region = HostRegion::Linear(now.data(), mirror.range.size);
  if (const CUresult error = SendRead(command, message, region, /*wait=*/true); error != CUDA_SUCCESS) return error;
  const auto take = [&](uint64_t offset, uint64_t size) {
    std::memcpy(mirror.host() + offset, now.data() + offset, size);
    std::memcpy(mirror.both.data() + offset, now.data() + offset, size);
    return CUDA_SUCCESS;
  };
  return ForChanges<kWord>(mirror.range.host, now.data(), mirror.both.data(), mirror.range.size, take);
}

CUresult Mirrors::Pull(uint64_t mark, CUctx_st* context, CUstream_st* stream) {
  std::lock_guard lock(mutex_);
  host_may_write_ = true;
  if (busy_.empty()) return CUDA_SUCCESS;
  std::erase_if(busy_, [&](const auto& entry) {
    const auto& [busy, state] = entry;
    if (state.context != context || state.command > mark) return false;
    return stream == nullptr || busy == stream || (stream == context->legacy && busy->blocking());
  });
  for (const auto& [host, mirror] : mirrors_) {
    if (mirror->fresh || mirror->range.context->fault.load(std::memory_order_relaxed) != 0) continue;
    // The kernels of its own stream may still be at it.
    if (stream != nullptr && mirror->IsElsewhere(stream)) continue;
    if (const CUresult error = Fetch(*mirror); error != CUDA_SUCCESS) return error;
  }
  return CUDA_SUCCESS;
}

CUresult Mirrors::Clear(Mirror& mirror) {
  CUstream_st* own = nullptr;
  if (const CUresult error = OwnStream(mirror.range.context, &own); error != CUDA_SUCCESS) return error;
  StreamCommand command;
  command.On(own);
  cuda::Memset message;
  message.address = mirror.range.device;
  message.element = 1;
  message.width = mirror.range.size;
  message.height = 1;
  if (const CUresult error = command.Send(message); error != CUDA_SUCCESS) return error;
  return AwaitStream(own);
}

bool Mirrors::MapPages(const MirrorRange& range) {
  const uint64_t begin = range.host / kPage * kPage;
  const uint64_t end = range.host + range.size;
  if (range.allocation != 0) return ShowPages(begin, RoundUp(end - begin));
  for (uint64_t page = begin; page < end; page += kPage) {
    if (pages_[page]++ != 0 || ShowPages(page, kPage)) continue;
    pages_.erase(page);
    for (uint64_t back = begin; back < page; back += kPage) ReleasePage(back);
    return false;
  }
  return true;
}

void Mirrors::UnmapPages(const MirrorRange& range) {
  const uint64_t begin = range.host / kPage * kPage;
  const uint64_t end = range.host + range.size;
  if (range.allocation != 0) return HidePages(begin, RoundUp(end - begin));
  for (uint64_t page = begin; page < end; page += kPage) ReleasePage(page);
}

void Mirrors::ReleasePage(uint64_t page) {
  const auto found = pages_.find(page);
  if (found == pages_.end() || --found->second != 0) return;
  pages_.erase(found);
  HidePages(page, kPage);
}

}  // namespace hawser::cu
