// Each field of each type that a Job may contain is accepted, explained, suggested, merged, owned,
// acted on, kept and refused as its line in api/openapi/ says. Few tests name a field.
#include "api/kube/schema/api_types.hpp"

#include "api/kube/objects/job_values.hpp"
#include "api/kube/objects/refused_fields.hpp"
#include "api/kube/patch/patch.hpp"
#include "api/kube/schema/field_schema.hpp"
#include "api/kube/schema/fields.hpp"
#include "api/kube/schema/openapi.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

namespace muster::api {
namespace {

using nlohmann::json;

// A field and its place in a Job.
struct Place {
  const ApiType& owner;
  const ApiField& field;
  std::string path;     // spec.template.spec.containers[0].env
  std::string pointer;  // /spec/template/spec/containers/0/env
  std::string owned;    // .spec.template.spec.containers[name="a"].env, or its atomic ancestor
  bool whole;           // it is inside an atomic object or list
  std::function<json(json)> job;  // a Job with this value there

  bool checked() const { return !field.unread && field.type != "any"; }
};

json plain(const ApiField& field, const std::string& text) {
  if (field.type == "bool") return field.refused_unless != "true";
  if (field.type == "int32" || field.type == "int64") return static_cast<int>(text[0]);
  return text;
}

// A valid item of a list or map, or a valid value of another field. Different `text` gives a
// different value.
json item(const ApiField& field, const std::string& text) {
  json value = json::object();
  for (const std::string_view key : field.keys) value[std::string(key)] = text;
  if (!field.keys.empty()) return value;
  if (field.type == "any" || field.unread) return {{"x", text}};
  if (field.of == nullptr) return plain(field, text);
  const ApiField& first = field.of->fields.front();
  const json one = item(first, text);
  value[std::string(first.name)] = first.list  ? json::array({one})
                                   : first.map ? json{{"x", one}}
                                               : one;
  return value;
}

json sample(const ApiField& field) {
  const json one = item(field, "a");
  return field.list ? json::array({one}) : field.map ? json{{"x", one}} : one;
}

// The place of item(field, "a") as paths() writes it.
std::string element_text(const ApiField& field) {
  std::vector<std::string> keys(field.keys.begin(), field.keys.end());
  std::sort(keys.begin(), keys.end());
  std::string text;
  for (const std::string& key : keys) text += (text.empty() ? "" : ",") + key + "=\"a\"";
  if (field.set) text = "=" + item(field, "a").dump();
  return "[" + text + "]";
}

void add_places(const ApiType& type, const Place* above, std::vector<Place>& out) {
  for (const ApiField& field : type.fields) {
    const std::string name(field.name);
    Place place{type, field, name, "/" + name, "." + name, false, {}};
    if (above) {
      const bool listed = above->field.list;
      const bool whole =
          above->whole || above->field.atomic || (listed && above->field.keys.empty());
      const std::string element = listed && !whole ? element_text(above->field) : "";
      place.path = above->path + (listed ? "[0]." : ".") + name;
      place.pointer = above->pointer + (listed ? "/0/" : "/") + name;
      place.owned = whole ? above->owned : above->owned + element + "." + name;
      place.whole = whole;
    }
    place.job = [above = above ? std::make_shared<Place>(*above) : nullptr, name](json value) {
      json object = json::object();
      if (above)
        for (const std::string_view key : above->field.keys) object[std::string(key)] = "a";
      object[name] = std::move(value);
      if (!above) return object;
      return above->job(above->field.list ? json::array({object}) : object);
    };
    out.push_back(place);
    if (field.of != nullptr && place.checked() && !field.map) add_places(*field.of, &place, out);
  }
}

std::vector<Place> places() {
  std::vector<Place> found;
  add_places(*api_type("Job"), nullptr, found);
  EXPECT_GT(found.size(), 150u);
  return found;
}

TEST(ApiTypes, EachFieldOfAJobIsAccepted) {
  for (const Place& place : places()) {
    const json job = place.job(sample(place.field));
    json conforming = job;
    const auto unknown = conform(conforming, "Job");
    ASSERT_TRUE(unknown.ok()) << place.path << ": " << unknown.error().message;
    EXPECT_TRUE(unknown->empty()) << place.path;
    EXPECT_EQ(conforming, job) << place.path;

    // A checked field refuses values of another type; a list is checked whatever its items are.
    json wrong = place.job(place.field.list ? json::object() : json::array());
    const auto refused = conform(wrong, "Job");
    EXPECT_EQ(refused.ok(), !place.checked() && !place.field.list) << place.path;
    if (!refused.ok()) {
      EXPECT_TRUE(refused.error().message.starts_with(place.path + ": found")) << place.path;
    }
  }
}

TEST(ApiTypes, EachJobFieldIsSuggestedForTypo) {
  for (const Place& place : places()) {
    const std::string name(place.field.name), typo = name + "x";
    const json::json_pointer at(place.pointer);
    json job = place.job(sample(place.field));
    json& object = job[at.parent_pointer()];
    object[typo] = 1;
    const auto unknown = conform(job, "Job");
    if (place.owner.field(typo) || !unknown.ok()) continue;
    ASSERT_EQ(unknown->size(), 1u) << place.path;
    EXPECT_EQ(unknown->front().meant, name) << place.path;
  }
}

TEST(ApiTypes, EachJobFieldIsDescribedInOpenApi) {
  const OrderedJson schemas = openapi_v3("apis/batch/v1", "1")["components"]["schemas"];
  for (const Place& place : places()) {
    const ApiField& field = place.field;
    const OrderedJson::json_pointer at("/" + std::string(place.owner.schema) + "/properties/" +
                                       std::string(field.name));
    ASSERT_TRUE(schemas.contains(at)) << place.path;
    const OrderedJson& schema = schemas[at];
    EXPECT_EQ(schema["description"], field.about) << place.path;
    EXPECT_EQ(schema.value("x-kubernetes-patch-strategy", "") == "merge", field.merged)
        << place.path;
    EXPECT_EQ(schema.value("x-kubernetes-list-type", ""), !field.list           ? ""
                                                          : !field.keys.empty() ? "map"
                                                          : field.set           ? "set"
                                                                                : "atomic")
        << place.path;
  }
}

TEST(ApiTypes, StrategicPatchMergesEachJobListAsDeclared) {
  int merged = 0, replaced = 0;
  for (const Place& place : places()) {
    const ApiField& field = place.field;
    if (!field.list) continue;
    const auto patched = [&](const json& base, const json& patch) {
      auto made = apply_patch(PatchType::strategic, place.job(json::array({base})),
                              place.job(json::array({patch})));
      EXPECT_TRUE(made.ok()) << place.path;
      return made.ok() ? (*made)[json::json_pointer(place.pointer)] : json();
    };
    const json a = item(field, "a"), b = item(field, "b");
    // A list inside an atomic list is replaced with it.
    const bool merges = field.merged && !place.whole;
    EXPECT_EQ(patched(a, b), merges ? json::array({a, b}) : json::array({b})) << place.path;
    ++(merges ? merged : replaced);
    if (field.keys.empty() || !merges) continue;
    json old = a, changed = a;
    old["old"] = changed["new"] = 1;
    json both = old;
    both["new"] = 1;
    EXPECT_EQ(patched(old, changed), json::array({both})) << place.path;
  }
  EXPECT_GT(merged, 10);
  EXPECT_GT(replaced, 10);
}

TEST(ApiTypes, EachJobFieldIsOwnedAsDeclared) {
  for (const Place& place : places()) {
    const ApiField& field = place.field;
    std::string expected = place.owned;
    if (!place.whole && field.list && (field.set || !field.keys.empty()))
      expected += element_text(field);
    const auto owned = paths(fields_of(FieldType("Job"), place.job(sample(field))));
    const bool leaf = place.whole || field.atomic || field.list ||
                      (field.of == nullptr && !field.map && field.type != "any");
    if (leaf) {
      EXPECT_TRUE(std::find(owned.begin(), owned.end(), expected) != owned.end()) << place.path;
    } else {  // its members
      EXPECT_TRUE(std::any_of(owned.begin(), owned.end(), [&](const std::string& one) {
        return one.starts_with(expected + ".");
      })) << place.path;
    }
  }
}

TEST(ApiTypes, EachJobFieldIsRefusedAsDeclared) {
  int hinted = 0;
  for (const Place& place : places()) {
    if (place.field.name == "priorityClassName") continue;  // its rule has its own wording
    const ApiField& field = place.field;
    const bool in_part = field.use == ApiField::Use::refused_in_part;
    const bool refused = field.use != ApiField::Use::acts && field.use != ApiField::Use::kept;
    const core::Violations found = refused_fields(place.job(sample(field)));
    const auto named =
        std::find_if(found.list().begin(), found.list().end(), [&](const Violation& one) {
          return one.path == place.path || (in_part && one.path.starts_with(place.path + "."));
        });
    ASSERT_EQ(named != found.list().end(), refused) << place.path;
    if (!refused) continue;
    EXPECT_TRUE(in_part || !field.hint.empty()) << place.path << " says nothing to use instead";
    const std::string hint = field.hint.empty() ? "" : "; " + std::string(field.hint);
    EXPECT_EQ(named->detail, "not supported by this version of muster" + hint) << place.path;
    // The hint is the text after the first sentence.
    const size_t end = field.about.find(". ");
    if (end == field.about.npos) continue;
    std::string rest(field.about.substr(end + 3));  // its first letter may be lower case
    rest.pop_back();
    EXPECT_TRUE(field.hint.ends_with(rest)) << place.path << ": " << field.hint;
    ++hinted;
  }
  EXPECT_GT(hinted, 3);
}

// What core reads from a Job, without the template's text, which it reads only to notice changes.
std::pair<core::JobMeta, core::JobSpec> read(const json& job) {
  std::pair<core::JobMeta, core::JobSpec> values;
  read_values(job, values.first, values.second);
  values.second.pod.kept.clear();
  return values;
}

TEST(ApiTypes, CoreReadsEachFieldThatActsAndNoneThatIsKept) {
  int acts = 0, kept = 0;
  for (const Place& place : places()) {
    const ApiField& field = place.field;
    const json with = place.job(sample(field));
    json without = with;
    without[json::json_pointer(place.pointer).parent_pointer()].erase(std::string(field.name));
    const bool seen = read(with) != read(without);
    if (field.use == ApiField::Use::kept) {
      EXPECT_FALSE(seen) << place.path;
      ++kept;
    }
    // The server, not core, acts on metadata, and an object is read field by field.
    const bool plain = field.of == nullptr || field.list;
    if (field.use != ApiField::Use::acts || !plain || !place.path.starts_with("spec.") ||
        place.owner.name == "ObjectMeta" || field.name == "apiVersion")
      continue;
    EXPECT_TRUE(seen) << place.path;
    ++acts;
  }
  EXPECT_GT(acts, 50);
  EXPECT_GT(kept, 20);
}

TEST(ApiTypes, AreFoundByName) {
  for (const ApiType& type : api_types()) {
    EXPECT_EQ(api_type(type.name), &type);
    if (!type.group_version.empty()) {
      EXPECT_EQ(api_kind(type.group_version, type.kind), &type);
    }
    for (const ApiField& field : type.fields) EXPECT_EQ(type.field(field.name), &field);
    EXPECT_EQ(type.field("notAField"), nullptr);
  }
  EXPECT_EQ(api_type("Jo"), nullptr);
  EXPECT_EQ(api_type("string"), nullptr);
  EXPECT_EQ(api_kind("batch/v2", "Job"), nullptr);
}

}  // namespace
}  // namespace muster::api
