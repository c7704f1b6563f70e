// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/backend_opencl/session.h"

#include <sys/mman.h>

#include <algorithm>

namespace hawser::server::ocl {

// ---------------------------------------------------------------------- FakeReplies

void FakeReplies::Flush() {
  const std::lock_guard<std::mutex> lock(mutex_);
  flushed_ = frames_.size();
  changed_.notify_all();
}

void FakeReplies::SendEncoded(uint16_t opcode, uint64_t seq, size_t size, bool flush, EncodeFunction encode,
                              const void* message) {
  auto frame = std::make_shared<Frame>();
  frame->opcode = static_cast<uint16_t>(opcode);
  frame->seq = seq;
  frame->flush = flush;
  frame->payload.resize(size);
  wire::Writer writer(frame->payload.data(), size);
  encode(message, writer);
  const std::lock_guard<std::mutex> lock(mutex_);
  frames_.push_back(std::move(frame));
  if (flush) flushed_ = frames_.size();
  changed_.notify_all();
}

std::shared_ptr<Frame> FakeReplies::Await(const std::function<bool(const Frame&)>& matches) {
  std::unique_lock<std::mutex> lock(mutex_);
  std::shared_ptr<Frame> found;
  size_t looked = 0;
  changed_.wait_for(lock, kPatience, [&] {
    for (; looked < frames_.size(); ++looked) {
      if (matches(*frames_[looked])) {
        found = frames_[looked];
        return true;
      }
    }
    return false;
  });
  return found;
}

std::vector<std::shared_ptr<Frame>> FakeReplies::All() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return frames_;
}

size_t FakeReplies::Count() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return frames_.size();
}

bool FakeReplies::AwaitFlushed() {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_for(lock, kPatience, [&] { return flushed_ == frames_.size(); });
}

// ---------------------------------------------------------------------- FakeBulkReceiver

bool FakeBulkReceiver::Expect(uint64_t transfer, uint64_t size, std::byte* target, std::function<void(int32_t)> done) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    Entry& entry = entries_[transfer];
    if (refuse_ || entry.expected) return false;
    entry.expected = true;
    entry.size = size;
    entry.target = target;
    entry.done = std::move(done);
    changed_.notify_all();
  }
  Progress(transfer);
  return true;
}

void FakeBulkReceiver::SetTarget(uint64_t transfer, std::byte* target) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    entries_[transfer].target = target;
    changed_.notify_all();
  }
  Progress(transfer);
}

int32_t FakeBulkReceiver::Receive(uint64_t transfer, uint64_t size, std::byte* target) {
  std::unique_lock<std::mutex> lock(mutex_);
  Entry& entry = entries_[transfer];
  if (!changed_.wait_for(lock, kPatience, [&] { return entry.data.has_value() || entry.broken != 0; })) {
    return CL_OUT_OF_RESOURCES;
  }
  if (entry.broken != 0) return entry.broken;
  std::memcpy(target, entry.data->data(), std::min<size_t>(size, entry.data->size()));
  return CL_SUCCESS;
}

void FakeBulkReceiver::Deliver(uint64_t transfer, std::vector<std::byte> data) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    entries_[transfer].data = std::move(data);
    changed_.notify_all();
  }
  Progress(transfer);
}

void FakeBulkReceiver::Break(uint64_t transfer, int32_t status) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    entries_[transfer].broken = status;
    changed_.notify_all();
  }
  Progress(transfer);
}

void FakeBulkReceiver::Progress(uint64_t transfer) {
  std::function<void(int32_t)> done;
  int32_t status = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    Entry& entry = entries_[transfer];
    if (!entry.expected || entry.finished) return;
    if (entry.broken != 0) {
      status = entry.broken;
    } else if (entry.data.has_value() && entry.target != nullptr) {
      std::memcpy(entry.target, entry.data->data(), std::min<size_t>(entry.size, entry.data->size()));
    } else {
      return;
    }
    entry.finished = true;
    done = std::move(entry.done);
  }
  done(status);
}

bool FakeBulkReceiver::AwaitTarget(uint64_t transfer) {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_for(lock, kPatience, [&] {
    const Entry& entry = entries_[transfer];
    return entry.expected && entry.target != nullptr;
  });
}

bool FakeBulkReceiver::IsExpected(uint64_t transfer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return entries_[transfer].expected;
}

// ---------------------------------------------------------------------- FakeBulkSender

FakeBulkSender::~FakeBulkSender() { Stop(); }

void FakeBulkSender::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  jobs_.clear();
}

void FakeBulkSender::Send(uint64_t transfer, wire::Bytes data, std::function<void()> done) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stop_) return;
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  jobs_.push_back({transfer, data, std::move(done)});
  changed_.notify_all();
}

void FakeBulkSender::Abort(uint64_t transfer, int32_t status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  results_[transfer].status = status;
  changed_.notify_all();
}

void FakeBulkSender::Hold(bool hold) {
  const std::lock_guard<std::mutex> lock(mutex_);
  hold_ = hold;
  changed_.notify_all();
}

void FakeBulkSender::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || (!hold_ && !jobs_.empty()); });
    if (stop_) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    Result& result = results_[job.transfer];
    result.data.assign(job.data.begin(), job.data.end());
    changed_.notify_all();
    lock.unlock();
    job.done();
    lock.lock();
  }
}

std::optional<FakeBulkSender::Result> FakeBulkSender::Await(uint64_t transfer) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!changed_.wait_for(lock, kPatience, [&] { return results_.count(transfer) != 0; })) return std::nullopt;
  return results_[transfer];
}

// ---------------------------------------------------------------------- Session

void Session::Unmap::operator()(std::byte* memory) const { ::munmap(memory, size); }

Session::Session(const SessionOptions& options) {
  wire::Result<std::unique_ptr<Backend>> backend = CreateOpenClBackend();
  if (!backend.ok()) std::abort();
  backend_ = std::move(*backend);
  if (options.heap != 0) {
    void* memory = ::mmap(nullptr, options.heap, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    heap_ = std::unique_ptr<std::byte, Unmap>(static_cast<std::byte*>(memory), Unmap{options.heap});
  }
  Services services;
  services.replies = &replies_;
  services.bulk_in = &bulk_in_;
  services.bulk_out = &bulk_out_;
  services.heap = {heap_.get(), options.heap};
  services.limits = options.limits;
  wire::Result<SessionStats> stats = SessionStats::Create();
  if (!stats.ok()) std::abort();
  stats_ = std::move(*stats);
  stats_.page()->device_memory_limit.store(options.limits.device_memory);
  services.stats = stats_.page();
  if (options.gate != nullptr) gates_.emplace(*options.gate);
  services.launch_gates = gates_ ? &*gates_ : nullptr;
  services.drain_kernel_output = [this] { drains_.fetch_add(1); };
  services.enable_kernel_output = [this] { output_enabled_.fetch_add(1); };
  services.log = [this](std::string_view level, const std::string& text) {
    const std::lock_guard<std::mutex> lock(log_mutex_);
    log_.push_back(std::string(level) + " " + text);
  };
  backend_->SetServices(services);
}

// What is being sent is staged in the backend's memory.
Session::~Session() { bulk_out_.Stop(); }

std::vector<std::string> Session::Log() {
  const std::lock_guard<std::mutex> lock(log_mutex_);
  return log_;
}

bool Session::HasEvent(Id event) {
  for (const std::shared_ptr<Frame>& frame : replies_.All()) {
    if (frame->opcode != static_cast<uint16_t>(opencl::Opcode::kEventStatus)) continue;
    const auto notice = Decode<opencl::EventStatus>(frame);
    if (notice && notice->message.event == event && notice->message.status <= CL_COMPLETE) return true;
  }
  return false;
}

bool Session::HasReleased(Id object) {
  for (const std::shared_ptr<Frame>& frame : replies_.All()) {
    if (frame->opcode != static_cast<uint16_t>(opencl::Opcode::kReleased)) continue;
    const auto notice = Decode<opencl::Released>(frame);
    if (notice && notice->message.object == object) return true;
  }
  return false;
}

Id Session::Context() {
  if (context_) return context_;
  opencl::CreateContext create;
  create.context = NewId(opencl::Handle::kContext);
  const Id device = Device();
  create.devices = wire::ArrayView<Id>(&device, 1);
  if (Do(create) == CL_SUCCESS) context_ = create.context;
  return context_;
}

Id Session::Queue(uint64_t properties) {
  opencl::CreateQueue create;
  create.queue = NewId(opencl::Handle::kQueue);
  create.context = Context();
  create.device = Device();
  const uint64_t list[] = {CL_QUEUE_PROPERTIES, properties};
  create.properties = wire::ArrayView<uint64_t>(list, 2);
  return Do(create) == CL_SUCCESS ? create.queue : Id();
}

Id Session::Buffer(uint64_t size, uint64_t flags) {
  opencl::CreateBuffer create;
  create.buffer = NewId(opencl::Handle::kMem);
  create.context = Context();
  create.flags = flags;
  create.size = size;
  create.heap_offset = ~uint64_t{0};
  return Do(create) == CL_SUCCESS ? create.buffer : Id();
}

Id Session::Source(std::string_view source) {
  opencl::CreateProgramWithSource create;
  create.program = NewId(opencl::Handle::kProgram);
  create.context = Context();
  create.source = wire::AsBytes(source);
  return Do(create) == CL_SUCCESS ? create.program : Id();
}

Id Session::Program(std::string_view source, std::string_view options) {
  opencl::BuildProgram build;
  build.program = Source(source);
  build.options = options;
  const auto result = Ask<opencl::BuildResult>(build);
  return result && result->message.status == CL_SUCCESS ? build.program : Id();
}

Id Session::Kernel(Id program, std::string_view name) {
  opencl::CreateKernel create;
  create.kernel = NewId(opencl::Handle::kKernel);
  create.program = program;
  create.name = name;
  return Do(create) == CL_SUCCESS ? create.kernel : Id();
}

int32_t Session::SetBuffer(Id kernel, uint32_t index, Id buffer) {
  opencl::SetKernelArg set;
  set.kernel = kernel;
  set.index = index;
  set.kind = 2;
  set.size = sizeof(void*);
  set.object = buffer;
  return Do(set);
}

int32_t Session::Launch(Id queue, Id kernel, uint64_t global, const std::vector<Id>& wait_list, Id event) {
  opencl::EnqueueNDRangeKernel launch;
  launch.queue = queue;
  launch.kernel = kernel;
  launch.work_dim = 1;
  launch.global = wire::ArrayView<uint64_t>(&global, 1);
  launch.wait_list = wire::ArrayView<Id>(wait_list.data(), wait_list.size());
  launch.event = event;
  return Do(launch);
}

int32_t Session::Write(Id queue, Id buffer, wire::Bytes data, uint64_t offset, const std::vector<Id>& wait_list,
                       Id event) {
  opencl::WriteBuffer write;
  write.queue = queue;
  write.buffer = buffer;
  write.offset = offset;
  write.size = data.size();
  write.data = data;
  write.wait_list = wire::ArrayView<Id>(wait_list.data(), wait_list.size());
  write.event = event;
  return Do(write);
}

std::vector<std::byte> Session::Read(Id queue, Id buffer, uint64_t size, uint64_t offset,
                                     const std::vector<Id>& wait_list, Id event) {
  opencl::ReadBuffer read;
  read.queue = queue;
  read.buffer = buffer;
  read.offset = offset;
  read.size = size;
  read.wait_list = wire::ArrayView<Id>(wait_list.data(), wait_list.size());
  read.event = event;
  const auto reply = Ask<opencl::ReadReply>(read);
  if (!reply || reply->message.status != CL_SUCCESS) return {};
  return {reply->message.data.begin(), reply->message.data.end()};
}

int32_t Session::Finish(Id queue) {
  opencl::Finish finish;
  finish.queue = queue;
  const auto reply = Ask<opencl::Status>(finish);
  return reply ? reply->message.status : CL_OUT_OF_RESOURCES;
}

Id Session::UserEvent() {
  opencl::CreateUserEvent create;
  create.event = NewId(opencl::Handle::kEvent);
  create.context = Context();
  return Do(create) == CL_SUCCESS ? create.event : Id();
}

int32_t Session::SetUserEvent(Id event, int32_t status) {
  opencl::SetUserEventStatus set;
  set.event = event;
  set.status = status;
  return Do(set);
}

int32_t Session::Release(Id object, bool notify) {
  opencl::Release release;
  release.object = object;
  release.notify = notify ? 1 : 0;
  return Do(release);
}

}  // namespace hawser::server::ocl
