// muster explain: the fields of an object, from the coordinator's OpenAPI document, which says what
// muster does with each.
#include "cli/verbs/show/explain.hpp"

#include "base/text/nearest.hpp"
#include "cli/verbs/words.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/table.hpp"

#include <algorithm>
#include <cctype>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace muster::cli {
namespace {

constexpr size_t kTextWidth = 80;  // of descriptions
constexpr size_t kDepthMax = 12;   // of --recursive

// One OpenAPI document, and the types that its schemas refer to.
class Schemas {
 public:
  explicit Schemas(Json document) : document_(std::move(document)) {}

  // Null: there is none.
  const Json& of_kind(const std::string& kind) const {
    for (const Json& schema : at(document_, {"components", "schemas"}))
      for (const Json& named : at(schema, {"x-kubernetes-group-version-kind"}))
        if (text_at(named, {"kind"}) == kind) return schema;
    static const Json none;
    return none;
  }

  // The type of a field's value, or of its items or map values; an object type has properties.
  const Json& type_of(const Json& field) const {
    const std::string reference = reference_of(field);
    if (!reference.empty())
      return at(document_, {"components", "schemas", name_of(reference).c_str()});
    for (const char* inner : {"items", "additionalProperties"})
      if (at(field, {inner}).is_object()) return type_of(at(field, {inner}));
    return field;
  }

  // "integer", "[]Container", "map[string]string".
  static std::string type_text(const Json& field) {
    if (const std::string reference = reference_of(field); !reference.empty())
      return reference.substr(reference.find_last_of("./") + 1);
    if (at(field, {"items"}).is_object()) return "[]" + type_text(at(field, {"items"}));
    if (at(field, {"additionalProperties"}).is_object())
      return "map[string]" + type_text(at(field, {"additionalProperties"}));
    const std::string type = text_at(field, {"type"});
    return type.empty() ? "Object" : type;
  }

 private:
  static std::string reference_of(const Json& field) {
    const Json& all = at(field, {"allOf"});
    return text_at(all.is_array() && !all.empty() ? all.front() : field, {"$ref"});
  }
  static std::string name_of(const std::string& reference) {
    return reference.substr(reference.rfind('/') + 1);
  }

  const Json document_;
};

// Wraps text into lines of at most kTextWidth characters, each after `indent`.
std::string wrapped(const std::string& text, const std::string& indent) {
  std::string out, line;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!line.empty() && line.size() + 1 + word.size() > kTextWidth) {
      out += indent + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return out + (line.empty() ? "" : indent + line + "\n");
}

void print_tree(const Schemas& schemas, const Json& type, const std::string& indent, size_t depth) {
  if (depth == kDepthMax) return;
  for (const auto& [name, field] : at(type, {"properties"}).items()) {
    std::cout << indent << name << " <" << Schemas::type_text(field) << ">\n";
    print_tree(schemas, schemas.type_of(field), indent + "  ", depth + 1);
  }
}

// The kind as the API writes it.
std::string kind_of_api(Kind kind) {
  if (kind == Kind::config_map) return "ConfigMap";
  if (kind == Kind::cron_job) return "CronJob";
  if (kind == Kind::priority_class) return "PriorityClass";
  std::string name = kind_name(kind);
  name = name.substr(0, name.find('.'));
  name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
  return name;
}

// "job", "job.spec.template": a kind and fields.
std::optional<Usage> read_fields(const std::string& text, ExplainOptions& o) {
  size_t end = std::min(text.find('.'), text.size());
  for (const char* name : {"job.batch", "jobs.batch", "cronjob.batch"})
    if ((text + ".").starts_with(std::string(name) + ".")) end = std::string(name).size();
  const auto kind = parse_kind(text.substr(0, end));
  if (!kind) return unknown_kind(text.substr(0, end));
  o.kind = *kind;
  while (end < text.size()) {
    const size_t from = end + 1;
    end = std::min(text.find('.', from), text.size());
    if (end == from) return Usage{"`" + text + "`: a field has no name"};
    o.path.push_back(text.substr(from, end - from));
  }
  return std::nullopt;
}

}  // namespace

int execute(const ExplainOptions& options) {
  const auto client = connect(options.target);
  const std::string kind = kind_of_api(options.kind);
  const std::string group = group_path(options.kind);
  auto document = object(*client, "/openapi/v3" + group);
  if (!document) return fail(document.error());
  const Schemas schemas(std::move(*document));
  const Json* type = &schemas.of_kind(kind);
  if (type->is_null())
    return fail(kNotFound,
                "the coordinator at " + client->address() + " has no documentation for " + kind);
  const Json* shown = type;  // with the description
  std::string so_far = kind_plural(options.kind), type_name;
  for (const std::string& name : options.path) {
    const Json& fields = at(*type, {"properties"});
    if (!fields.contains(name)) {
      std::vector<std::string> known;
      for (const auto& [other, field] : fields.items()) known.push_back(other);
      return fail(kNotFound, so_far + " has no field `" + name + "`" + did_you_mean(name, known));
    }
    shown = &fields.at(name);
    type_name = Schemas::type_text(*shown);
    type = &schemas.type_of(*shown);
    so_far += "." + name;
  }
  std::cout << "KIND:     " << kind << "\nVERSION:  " << group.substr(group.find('/', 1) + 1)
            << "\n\n";
  if (!options.path.empty())
    std::cout << "FIELD:    " << options.path.back() << " <" << type_name << ">\n\n";
  std::cout << "DESCRIPTION:\n" << wrapped(text_at(*shown, {"description"}), "  ");
  if (type != shown && text_at(*type, {"description"}) != text_at(*shown, {"description"}))
    std::cout << wrapped(text_at(*type, {"description"}), "  ");
  const Json& fields = at(*type, {"properties"});
  if (fields.empty()) return kDone;
  std::cout << "\nFIELDS:\n";
  if (options.recursive) {
    print_tree(schemas, *type, "  ", 0);
  } else {
    for (const auto& [name, field] : fields.items())
      std::cout << "  " << name << " <" << Schemas::type_text(field) << ">\n"
                << wrapped(text_at(field, {"description"}), "    ");
  }
  std::cout.flush();
  return kDone;
}

Verb explain_verb() {
  auto w = std::make_shared<Raw<ExplainOptions>>();
  return {
      .title = {"Jobs", "explain", "Describe the fields of jobs and other objects"},
      .rows = {{"what", "KIND[.FIELD...]", "Kind of object, and a field of it", &w->what, kAnything,
                kRequired},
               {"--recursive", "", "List all fields below it, without descriptions",
                &w->o.recursive}},
      .asks = {&w->o.target},
      .footer =
          "Examples:\n  muster explain job.spec\n  muster explain job.spec.podFailurePolicy.rules\n"
          "  muster explain job --recursive\n"
          "The text says what the coordinator does with a field; docs/job.md has the same.",
      .finish = [w](const Given&) -> Judged { return judged(read_fields(w->what, w->o), w->o); }};
}

}  // namespace muster::cli
