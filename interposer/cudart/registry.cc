// SPDX-License-Identifier: Apache-2.0
#include "interposer/cudart/registry.h"

namespace hawser::cudart {

Module* Registry::AddModule(const void* wrapper) {
  auto* module = new Module;
  module->wrapper = wrapper;
  const std::unique_lock lock(mutex_);
  modules_.insert(module);
  return module;
}

Module* Registry::FindModule(void** handle) {
  auto* module = reinterpret_cast<Module*>(handle);
  const std::shared_lock lock(mutex_);
  return modules_.count(module) != 0 ? module : nullptr;
}

bool Registry::RemoveModule(Module* module) {
  const std::unique_lock lock(mutex_);
  if (modules_.erase(module) == 0) return false;
  removed_.push_back(module);
  std::erase_if(functions_, [module](const auto& entry) { return entry.second->module == module; });
  std::erase_if(variables_, [module](const auto& entry) { return entry.second->module == module; });
  generation_.fetch_add(1, std::memory_order_release);
  return true;
}

void Registry::AddFunction(Module* module, const void* host, const char* name) {
  auto* function = new Function;
  function->module = module;
  function->host = host;
  function->name = name;
  const std::unique_lock lock(mutex_);
  module->functions.push_back(function);
  functions_[host] = function;
  generation_.fetch_add(1, std::memory_order_release);
}

void Registry::AddVariable(Module* module, const void* host, const char* name, size_t size, void** managed) {
  auto* variable = new Variable;
  variable->module = module;
  variable->name = name;
  variable->size = size;
  variable->managed = managed;
  const std::unique_lock lock(mutex_);
  module->variables.push_back(variable);
  variables_[host] = variable;
}

void Registry::AddAlias(const void* host, Variable* variable) {
  const std::unique_lock lock(mutex_);
  variables_[host] = variable;
}

Function* Registry::FindFunction(const void* host, FunctionCache& cache) {
  const uint64_t generation = generation_.load(std::memory_order_acquire);
  if (cache.generation != generation) {
    cache.slots.fill({});
    cache.generation = generation;
  }
  FunctionCache::Slot& slot = cache.slots[FunctionCache::Index(host)];
  if (slot.function != nullptr && slot.host == host) return slot.function;
  const std::shared_lock lock(mutex_);
  const auto found = functions_.find(host);
  if (found == functions_.end()) return nullptr;
  slot = {host, found->second};
  return found->second;
}

Variable* Registry::FindVariable(const void* host) {
  const std::shared_lock lock(mutex_);
  const auto found = variables_.find(host);
  return found != variables_.end() ? found->second : nullptr;
}

}  // namespace hawser::cudart
