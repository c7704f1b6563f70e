// SPDX-License-Identifier: Apache-2.0
// guest_entries.h/.cc: the API's entry points. All are declared with the types of the API's own headers;
// those without behaviour of their own are defined too.
#include <algorithm>

#include "proto/plugin/emitter.h"

namespace hawser::plugin {
namespace {

struct Object {
  Handle handle;
  const char* type;
  const char* name;
};
constexpr Object kObjects[] = {
    {CONTEXT, "cl_context", "context"}, {QUEUE, "cl_command_queue", "queue"}, {MEM, "cl_mem", "mem"},
    {SAMPLER, "cl_sampler", "sampler"}, {PROGRAM, "cl_program", "program"},   {KERNEL, "cl_kernel", "kernel"},
    {EVENT, "cl_event", "event"},       {DEVICE, "cl_device_id", "device"},
};

const Object* FindObject(Handle handle) {
  for (const Object& object : kObjects) {
    if (object.handle == handle) return &object;
  }
  return nullptr;
}

class GuestEntriesEmitter final : public Emitter {
 public:
  void Emit(const Model&, const Package& package, Files* files) const override {
    if (std::none_of(package.methods.begin(), package.methods.end(), HasGeneratedEntry)) return;
    (*files)[PathOf(package, "guest_entries.h")] = Header(package);
    (*files)[PathOf(package, "guest_entries.cc")] = Source(package);
  }

 private:
  static bool HasGeneratedEntry(const Method& method) {
    const Entry entry = method.options.entry();
    return entry != HANDWRITTEN && entry != NOT_AN_API;
  }

  static constexpr const char* kIgnoreDeprecated =
      "// Deprecated calls are part of what is offered.\n"
      "#pragma GCC diagnostic push\n#pragma GCC diagnostic ignored \"-Wdeprecated-declarations\"\n";

  static std::string Header(const Package& package) {
    Text text;
    AddOrigin(&text, package, "The API's entry points, in a namespace, so that they are not the loader's.");
    OpenHeader(&text, package, "guest_entries.h");
    text.Add(
        "#ifndef CL_TARGET_OPENCL_VERSION\n#define CL_TARGET_OPENCL_VERSION 300\n#endif\n"
        "#include <CL/cl_icd.h>\n\n#include <type_traits>\n\nnamespace hawser::ocl {\n\n"
        "// The types come from the headers of the ICD loader, which have every call, deprecated or not.\n");
    text.Add(kIgnoreDeprecated);
    for (const Method& method : package.methods) {
      if (method.is_api())
        text.Add("extern std::remove_pointer_t<decltype(cl_icd_dispatch::$name$)> $name$;\n", {{"name", method.api}});
    }
    text.Add(
        "#pragma GCC diagnostic pop\n\n"
        "/// Sets the entry of each call above and leaves the others as they are.\n"
        "void FillDispatch(cl_icd_dispatch& table);\n\n"
        "/// The call of that name (\"clCreateBuffer\"), or null.\n"
        "void* EntryPoint(const char* name);\n\n"
        "}  // namespace hawser::ocl\n");
    CloseHeader(&text, package, "guest_entries.h");
    return text.str();
  }

  static std::string Source(const Package& package) {
    Text text;
    AddOrigin(&text, package, "Entry points without behaviour of their own, and the list of all.");
    text.Add(
        "#include \"proto/$name$/guest_entries.h\"\n\n#include <cstring>\n\n"
        "#include \"interposer/opencl/entry.h\"\n#include \"proto/$name$/messages.h\"\n\n"
        "namespace hawser::ocl {\n\n",
        {{"name", package.cpp_name}});
    text.Add(kIgnoreDeprecated);
    for (const Method& method : package.methods) {
      switch (method.options.entry()) {
        case RETAIN:
          AddCounted(method, "RetainObject", &text);
          break;
        case RELEASE:
          AddCounted(method, "ReleaseObject", &text);
          break;
        case REFUSE:
          AddRefused(method, &text);
          break;
        case ENQUEUE:
          AddEnqueue(package, method, &text);
          break;
        default:
          break;
      }
    }
    AddList(package, &text);
    text.Add("\n#pragma GCC diagnostic pop\n\n}  // namespace hawser::ocl\n");
    return text.str();
  }

  static void AddCounted(const Method& method, const char* function, Text* text) {
    const Object& object = *FindObject(method.options.object());
    text->Add("\ncl_int CL_API_CALL $api$($type$ $name$) { return $function$<$type$>($name$); }\n",
              {{"api", method.api}, {"type", object.type}, {"name", object.name}, {"function", function}});
  }

  static void AddRefused(const Method& method, Text* text) {
    const hawser::Call& options = method.options;
    const std::string result = options.c_result().empty() ? "cl_int" : options.c_result();
    text->Add("\n$result$ CL_API_CALL $api$($params$) {\n  RefuseOnce(\"$api$\", $reason$);\n",
              {{"result", result},
               {"api", method.api},
               {"params", options.c_params()},
               {"reason", Quoted(options.reason())}});
    if (result == "cl_int") {
      text->Add("  return $code$;\n}\n", {{"code", options.refuse_code()}});
    } else {
      text->Add("  if (errcode_ret != nullptr) *errcode_ret = $code$;\n  return nullptr;\n}\n",
                {{"code", options.refuse_code()}});
    }
  }

  static void AddEnqueue(const Package& package, const Method& method, Text* text) {
    const std::vector<Field>& fields = method.request->fields;
    // The first is the queue, the last two are the wait list and the event.
    const std::vector<Field> middle(fields.begin() + 1, fields.end() - 2);
    text->Add("\ncl_int CL_API_CALL $api$(cl_command_queue queue", {{"api", method.api}});
    for (const Field& field : middle) text->Add(", $parameter$", {{"parameter", Parameter(field)}});
    text->Add(
        ", cl_uint num_events,\n    const cl_event* wait_list, cl_event* event) {\n"
        "  Enqueue enqueue(queue, $type$, num_events, wait_list, event);\n"
        "  cl_int error = enqueue.Begin();\n"
        "  if (error != CL_SUCCESS) return error;\n"
        "  $package$::$message$ message;\n",
        {{"type", method.options.command_type()}, {"package", package.cpp_name}, {"message", method.request->name}});
    for (const Field& field : middle) {
      const std::string use = Use(field);
      if (use.empty()) {
        text->Add("  message.$name$ = $value$;\n", {{"name", field.name}, {"value", Value(field)}});
      } else {
        text->Add("  error = enqueue.$use$;\n  if (error != CL_SUCCESS) return error;\n", {{"use", use}});
      }
    }
    text->Add(
        "  error = Check(enqueue, message);\n  if (error != CL_SUCCESS) return error;\n"
        "  return enqueue.Submit(message);\n}\n");
  }

  static std::string Parameter(const Field& field) {
    const std::string& name = field.name;
    if (field.is_id()) {
      return field.shape == Shape::kArray ? "cl_uint num_" + name + ", const cl_mem* " + name : "cl_mem " + name;
    }
    switch (field.shape) {
      case Shape::kBytes:
        return "const void* " + name + ", size_t " + name + "_size";
      case Shape::kFixedBytes:
        return "const void* " + name;
      case Shape::kFixedArray:
        return "const " + field.options.c_type() + "* " + name;
      default:
        return field.options.c_type() + " " + name;
    }
  }

  /// The function of Enqueue that checks and fills the field; empty for a plain number.
  static std::string Use(const Field& field) {
    const std::string& name = field.name;
    const std::string target = ", &message." + name + ")";
    if (field.is_id()) {
      return field.shape == Shape::kArray ? "UseMems(num_" + name + ", " + name + target : "UseMem(" + name + target;
    }
    switch (field.shape) {
      case Shape::kBytes:
        return "UseBytes(" + name + ", " + name + "_size" + target;
      case Shape::kFixedBytes:
        return "UseFixed(" + name + target;
      case Shape::kFixedArray:
        return "UseArray(" + name + target;
      default:
        return {};
    }
  }

  static std::string Value(const Field& field) {
    const bool pointer = field.options.c_type().find('*') != std::string::npos;
    return pointer ? "reinterpret_cast<" + field.element + ">(" + field.name + ")" : field.name;
  }

  static void AddList(const Package& package, Text* text) {
    std::vector<std::string> names;
    text->Add("\nvoid FillDispatch(cl_icd_dispatch& table) {\n");
    for (const Method& method : package.methods) {
      if (!method.is_api()) continue;
      names.push_back(method.api);
      text->Add("  table.$name$ = $name$;\n", {{"name", method.api}});
    }
    std::sort(names.begin(), names.end());
    text->Add(
        "}\n\nnamespace {\n\nstruct Entry {\n  const char* name;\n  void* function;\n};\n\n"
        "// In the order of strcmp().\nconst Entry kEntries[] = {\n");
    for (const std::string& name : names) {
      text->Add("    {\"$name$\", reinterpret_cast<void*>(&$name$)},\n", {{"name", name}});
    }
    text->Add(
        "};\n\n}  // namespace\n\n"
        "void* EntryPoint(const char* name) {\n"
        "  if (name == nullptr) return nullptr;\n"
        "  size_t low = 0;\n  size_t high = sizeof(kEntries) / sizeof(kEntries[0]);\n"
        "  while (low < high) {\n"
        "    const size_t middle = (low + high) / 2;\n"
        "    const int order = std::strcmp(name, kEntries[middle].name);\n"
        "    if (order == 0) return kEntries[middle].function;\n"
        "    if (order < 0) {\n      high = middle;\n    } else {\n      low = middle + 1;\n    }\n"
        "  }\n  return nullptr;\n}\n");
  }
};

}  // namespace

std::unique_ptr<Emitter> MakeGuestEntriesEmitter() { return std::make_unique<GuestEntriesEmitter>(); }

}  // namespace hawser::plugin
