// SPDX-License-Identifier: Apache-2.0
// Cuts the stream of a command channel into frames.
#ifndef HAWSER_WIRE_FRAME_READER_H_
#define HAWSER_WIRE_FRAME_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "wire/channel.h"
#include "wire/codec.h"
#include "wire/frame.h"
#include "wire/status.h"

namespace hawser::wire {

/// Reads many frames at a time into a buffer of its own. The buffer grows as bytes arrive, at most
/// by doubling, never by what a header claims, and shrinks again after a large frame.
///
/// Threading: belongs to the channel's reading thread.
class FrameReader {
 public:
  enum class Next : uint8_t {
    kFrame,     ///< *header and *payload are set.
    kNeedMore,  ///< No whole frame is there now; wait with Channel::WaitReadable().
    kClosed,    ///< The stream has ended; *status says whether within a frame.
    kError,     ///< *status says why; the stream cannot be used any more.
  };

  /// The channel is borrowed. Frames with a payload above `max_payload` are an error.
  explicit FrameReader(Channel* channel, uint32_t max_payload = kMaxFramePayload);

  /// Yields the next frame without waiting. *payload lives until the next Pull().
  Next Pull(FrameHeader* header, Bytes* payload, Status* status);

  /// Bytes read and not yet yielded.
  size_t buffered() const { return end_ - begin_; }
  /// Bytes of memory held now.
  size_t capacity() const { return capacity_; }

 private:
  Next Fill(Status* status);
  void MakeRoom();
  void Reallocate(size_t capacity);

  Channel* const channel_;
  const uint32_t max_payload_;
  size_t capacity_ = 0;
  size_t begin_ = 0;  ///< Bytes [begin_, end_) are waiting.
  size_t end_ = 0;
  std::unique_ptr<std::byte[]> buffer_;
};

/// Writes one frame and flushes it, waiting as needed. Sets header.size. For set-up and for threads
/// that may wait; launch paths encode header and payload together and use TryWrite.
Status WriteFrame(Channel& channel, FrameHeader header, Bytes payload);

}  // namespace hawser::wire

#endif  // HAWSER_WIRE_FRAME_READER_H_
