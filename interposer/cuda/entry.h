// SPDX-License-Identifier: Apache-2.0
// What entry points begin with: the current context, earlier failures, the stream.
#ifndef HAWSER_INTERPOSER_CUDA_ENTRY_H_
#define HAWSER_INTERPOSER_CUDA_ENTRY_H_

#include "interposer/cuda/client.h"
#include "interposer/cuda/mirror.h"
#include "interposer/cuda/stream.h"
#include "interposer/cuda/thread_state.h"
#include "interposer/cuda/wire_call.h"

namespace hawser::cu {

/// Whether the handle is a context that can be used.
CUresult CheckContext(CUctx_st* context);
/// The same of a thread's current one, where one that has ended has a code of its own.
CUresult CheckOwnContext(CUctx_st* current);

/// The calling thread's context. With `earlier`: also returns, once, what an earlier command failed with; for calls
/// that the API lets return such errors, but not for those that end something: their caller would think it ended. A
/// context that is broken for good returns its fault in any case.
CUresult CurrentContext(CUctx_st** context, bool earlier = true);

/// What an earlier command of the context failed with, once; CUDA_SUCCESS: nothing.
inline CUresult TakePending(CUctx_st* context) {
  if (context->pending.load(std::memory_order_relaxed) == 0) [[likely]]
    return CUDA_SUCCESS;
  return static_cast<CUresult>(context->pending.exchange(0, std::memory_order_relaxed));
}

/// A command on its way to a stream.
///   StreamCommand command; if (e = command.Begin(handle)) return e; ... return command.Send(message);
class StreamCommand {
 public:
  /// `earlier` as for CurrentContext(). A capture may bar commands (Captures::CheckCommand).
  CUresult Begin(CUstream handle, bool earlier = true);
  /// For calls that only ask about the stream: no capture bars those.
  CUresult BeginQuestion(CUstream handle, bool earlier = true);
  /// For this library's own commands: whatever the calling thread's context is.
  void On(CUstream_st* stream) {
    context_ = stream->context;
    stream_ = stream;
    own_ = true;
  }

  CUctx_st* context() const { return context_; }  ///< The stream's.
  CUstream_st* stream() const { return stream_; }
  guest::Session* session() const { return Client::Get().session(); }
  bool capturing() const { return stream_->capturing.load(std::memory_order_relaxed); }

  /// Fills context and stream of the message.
  template <typename Message>
  void Address(Message& message) const {
    message.context = context_->id;
    message.stream = stream_->id;
  }
  template <typename Message>
  CUresult Send(Message& message) {
    return SendThen(message, [] { return CUDA_SUCCESS; });
  }
  /// Sends the message and, when that went well, calls follow(), which sends its data (SendBulk).
  template <typename Message, typename Follow>
  CUresult SendThen(Message& message, const Follow& follow) {
    Address(message);
    if (!own_ && Client::Get().crowded()) [[unlikely]]
      AwaitRoom();
    NoteCommand();
    CUresult error = FromWire(session()->Send(message));
    if (error == CUDA_SUCCESS) error = follow();
    if (!own_) Mirrors::Get().AfterCommand(stream_);  // Takes a lock, so it comes behind the data.
    return error;
  }
  /// The same, once the server has done it.
  template <typename Message>
  CUresult SendAndWait(Message& message) {
    Address(message);
    NoteCommand();
    const CUresult error = FromWire(session()->SendAndWait(message));
    if (!own_) Mirrors::Get().AfterCommand(stream_);
    return error;
  }
  /// Before a message is sent that these functions do not send.
  void NoteCommand() {
    if (stream_->blocking()) {
      CUstream_st* const legacy = context_->legacy;
      const bool new_ones = stream_ == legacy ? context_->blocking_land.load(std::memory_order_relaxed)
                                              : legacy->landings.version() != stream_->followed;
      if (new_ones) [[unlikely]]
        FollowOthers();
    }
    stream_->submitted.fetch_add(1, std::memory_order_relaxed);
  }

 private:
  /// What the streams read that it is ordered with by default comes before the stream's next command.
  void FollowOthers();
  /// Waits, as with a device whose queue is full, until the server takes more of what this stream is given.
  void AwaitRoom() const;

  CUctx_st* context_ = nullptr;
  CUstream_st* stream_ = nullptr;
  bool own_ = false;  ///< Not the application's.
};

/// Logs once per call why it cannot work remotely. Returns CUDA_ERROR_NOT_SUPPORTED.
CUresult RefuseOnce(const char* call, const char* why, std::atomic_flag* said);

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_ENTRY_H_
