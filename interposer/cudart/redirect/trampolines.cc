// SPDX-License-Identifier: Apache-2.0
// Threads: a trampoline may be reached by several threads at once; each asks where it goes and writes that to the slot.
// The list of targets grows under the loader's lock (constructors, dlopen), and its elements stay.
#include "interposer/cudart/redirect/trampolines.h"

#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <mutex>

#include "interposer/cudart/redirect/near_memory.h"

// Where every trampoline goes the first time, with its number on the stack above the return address. Keeps all
// registers that carry arguments, asks for the function, and goes on to it as if it had been called.
__asm__(R"(
  .text
  .hidden hawser_redirect_first
  .globl hawser_redirect_first
  .type hawser_redirect_first, @function
  .balign 16
hawser_redirect_first:
  .cfi_startproc
  .cfi_def_cfa_offset 16
  endbr64
  pushq %rbp
  .cfi_def_cfa_offset 24
  .cfi_offset %rbp, -24
  movq %rsp, %rbp
  .cfi_def_cfa_register %rbp
  andq $-16, %rsp
  subq $192, %rsp
  movq %rdi, 0(%rsp)
  movq %rsi, 8(%rsp)
  movq %rdx, 16(%rsp)
  movq %rcx, 24(%rsp)
  movq %r8, 32(%rsp)
  movq %r9, 40(%rsp)
  movq %rax, 48(%rsp)
  movq %r10, 56(%rsp)
  movaps %xmm0, 64(%rsp)
  movaps %xmm1, 80(%rsp)
  movaps %xmm2, 96(%rsp)
  movaps %xmm3, 112(%rsp)
  movaps %xmm4, 128(%rsp)
  movaps %xmm5, 144(%rsp)
  movaps %xmm6, 160(%rsp)
  movaps %xmm7, 176(%rsp)
  movq 8(%rbp), %rdi
  call hawser_redirect_find
  movq %rax, %r11
  movq 0(%rsp), %rdi
  movq 8(%rsp), %rsi
  movq 16(%rsp), %rdx
  movq 24(%rsp), %rcx
  movq 32(%rsp), %r8
  movq 40(%rsp), %r9
  movq 48(%rsp), %rax
  movq 56(%rsp), %r10
  movaps 64(%rsp), %xmm0
  movaps 80(%rsp), %xmm1
  movaps 96(%rsp), %xmm2
  movaps 112(%rsp), %xmm3
  movaps 128(%rsp), %xmm4
  movaps 144(%rsp), %xmm5
  movaps 160(%rsp), %xmm6
  movaps 176(%rsp), %xmm7
  movq %rbp, %rsp
  popq %rbp
  .cfi_def_cfa %rsp, 16
  addq $8, %rsp
  .cfi_def_cfa_offset 8
  jmp *%r11
  .cfi_endproc
  .size hawser_redirect_first, . - hawser_redirect_first
)");

extern "C" void hawser_redirect_first();

namespace hawser::redirect {
namespace {

constexpr size_t kCodeSize = 32;
constexpr size_t kPage = 4096;

struct Target {
  std::string name;
  Destination* destination;
  std::atomic<uint64_t>* slot;  // What the trampoline jumps through.
};

// Never destroyed: programs call CUDA while they end.
std::deque<Target>& Targets() {
  static auto* targets = new std::deque<Target>;
  return *targets;
}
std::mutex& TargetsMutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

template <typename Value>
void Put(uint8_t*& at, Value value) {
  std::memcpy(at, &value, sizeof(value));
  at += sizeof(value);
}

int32_t Distance(const uint8_t* next_instruction, const void* to) {
  return static_cast<int32_t>(reinterpret_cast<intptr_t>(to) - reinterpret_cast<intptr_t>(next_instruction));
}

// endbr64; jmp *slot
void WriteJump(uint8_t*& at, const void* slot) {
  Put<uint32_t>(at, 0xfa1e0ff3);
  Put<uint16_t>(at, 0x25ff);
  Put<int32_t>(at, Distance(at + 4, slot));
}

bool MakeExecutable(void* code, size_t size) { return mprotect(code, size, PROT_READ | PROT_EXEC) == 0; }

}  // namespace

std::vector<uintptr_t> MakeTrampolines(const std::vector<std::string>& names, Destination* destination, uintptr_t low,
                                       uintptr_t high) {
  // Code, and then the slots in pages that stay writable: slot 0 is shared and leads to hawser_redirect_first.
  const size_t code_size = (names.size() * kCodeSize + kPage - 1) & ~(kPage - 1);
  const size_t slots_size = ((names.size() + 1) * sizeof(uint64_t) + kPage - 1) & ~(kPage - 1);
  auto* code = static_cast<uint8_t*>(MapNear(low, high, code_size + slots_size));
  if (code == nullptr) return {};
  auto* slots = reinterpret_cast<std::atomic<uint64_t>*>(code + code_size);
  slots[0].store(reinterpret_cast<uint64_t>(&hawser_redirect_first), std::memory_order_relaxed);
  std::vector<uintptr_t> addresses;
  const std::lock_guard lock(TargetsMutex());
  for (size_t i = 0; i < names.size(); ++i) {
    uint8_t* at = code + i * kCodeSize;
    std::atomic<uint64_t>* slot = slots + i + 1;
    addresses.push_back(reinterpret_cast<uintptr_t>(at));
    WriteJump(at, slot);
    // The first time the slot leads here: endbr64; push number; jmp *slot0
    slot->store(reinterpret_cast<uint64_t>(at), std::memory_order_relaxed);
    Put<uint32_t>(at, 0xfa1e0ff3);
    Put<uint8_t>(at, 0x68);
    Put<uint32_t>(at, static_cast<uint32_t>(Targets().size()));
    Put<uint16_t>(at, 0x25ff);
    Put<int32_t>(at, Distance(at + 4, slots));
    Targets().push_back({names[i], destination, slot});
  }
  if (!MakeExecutable(code, code_size)) return {};
  return addresses;
}

uintptr_t MakeJumpTo(uintptr_t from, uintptr_t target) {
  auto* code = static_cast<uint8_t*>(MapNear(from, from + 16, 2 * kPage));
  if (code == nullptr) return 0;
  auto* slot = reinterpret_cast<uint64_t*>(code + kPage);
  *slot = target;
  uint8_t* at = code;
  WriteJump(at, slot);
  return MakeExecutable(code, kPage) ? reinterpret_cast<uintptr_t>(code) : 0;
}

namespace {

uint64_t Find(uint64_t number) {
  const Target* target = nullptr;
  {
    const std::lock_guard lock(TargetsMutex());
    target = &Targets()[number];
  }
  const uint64_t address = target->destination->Find(target->name);
  target->slot->store(address, std::memory_order_release);
  return address;
}

}  // namespace
}  // namespace hawser::redirect

extern "C" __attribute__((visibility("hidden"), used)) uint64_t hawser_redirect_find(uint64_t number) {
  return hawser::redirect::Find(number);
}
