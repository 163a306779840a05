// The OpenAPI documents agree with the parser, the patches and the routes.
#include "api/kube/schema/openapi.hpp"

#include "api/kube/patch/patch.hpp"
#include "api/kube/schema/api_types.hpp"
#include "api/kube/schema/discovery.hpp"
#include "api/kube/schema/resources.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <set>

namespace muster::api {
namespace {

TEST(OpenApi, EachTypeAndFieldHasDescription) {
  for (const ApiType& t : api_types()) {
    EXPECT_TRUE(t.about.ends_with('.')) << t.name;
    for (const ApiField& field : t.fields)
      EXPECT_TRUE(field.about.ends_with('.')) << t.name << "." << field.name;
  }
}

TEST(OpenApi, ListsAreMergedAsStrategicPatchesMergeThem) {
  for (const ApiType& t : api_types()) {
    for (const ApiField& field : t.fields) {
      // Only lists whose items can be objects.
      if (!field.list || field.set) continue;
      const std::string key(field.keys.empty() ? "name" : field.keys.front());
      const Json base = {{field.name, Json::array({Json{{key, "a"}, {"old", 1}}})}};
      const Json patch = {{field.name, Json::array({Json{{key, "b"}}})}};
      const auto merged = apply_patch(PatchType::strategic, base, patch);
      ASSERT_TRUE(merged.ok()) << t.name << "." << field.name;
      EXPECT_EQ((*merged)[field.name].size(), field.merged ? 2u : 1u)
          << t.name << "." << field.name;
    }
  }
}

TEST(OpenApi, EachReferenceLeadsToASchema) {
  ASSERT_FALSE(openapi_paths().empty());
  for (const std::string& path : openapi_paths()) {
    const OrderedJson document = openapi_v3(path, "1");
    int references = 0;
    std::function<void(const OrderedJson&)> walk = [&](const OrderedJson& json) {
      if (json.is_object() && json.contains("$ref")) {
        const std::string to = json["$ref"];
        EXPECT_TRUE(document.contains(OrderedJson::json_pointer(to.substr(1)))) << to;
        ++references;
      }
      // Generators of clients reject an empty list of parameters.
      if (json.is_object() && json.contains("parameters")) {
        EXPECT_FALSE(json["parameters"].empty()) << path << json.dump();
      }
      if (json.is_structured())
        for (const OrderedJson& child : json) walk(child);
    };
    walk(document);
    EXPECT_GT(references, 0) << path;
  }
  EXPECT_TRUE(openapi_v3("apis/apps/v1", "1").is_null());
}

TEST(OpenApi, PatchesOfJobsKnowFieldValidation) {
  const OrderedJson patch = openapi_v3(
      "apis/batch/v1", "1")["paths"]["/apis/batch/v1/namespaces/{namespace}/jobs/{name}"]["patch"];
  EXPECT_EQ(patch["x-kubernetes-group-version-kind"]["kind"], "Job");
  bool known = false;
  for (const OrderedJson& parameter : patch["parameters"])
    known = known || parameter["name"] == "fieldValidation";
  EXPECT_TRUE(known);
  EXPECT_TRUE(patch["requestBody"]["content"].contains("application/strategic-merge-patch+json"));
}

// Parses a protobuf message: (number, bytes) of each length-delimited field.
std::vector<std::pair<unsigned, std::string>> fields_in(std::string_view bytes) {
  std::vector<std::pair<unsigned, std::string>> found;
  auto varint = [&bytes] {
    uint64_t n = 0;
    for (int shift = 0; !bytes.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes.front());
      bytes.remove_prefix(1);
      n |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) break;
    }
    return n;
  };
  while (!bytes.empty()) {
    const uint64_t tag = varint(), size = varint();
    EXPECT_EQ(tag & 7, 2u);
    EXPECT_LE(size, bytes.size());
    found.emplace_back(static_cast<unsigned>(tag >> 3), bytes.substr(0, size));
    bytes.remove_prefix(std::min<size_t>(size, bytes.size()));
  }
  return found;
}

TEST(OpenApi, Version2HoldsAllTypes) {
  std::map<unsigned, std::string> document;
  for (auto& [number, bytes] : fields_in(openapi_v2("1"))) document[number] = bytes;
  EXPECT_EQ(document[1], "2.0");
  std::set<std::string> names;
  for (const auto& [number, named] : fields_in(document[9]))
    names.insert(fields_in(named).front().second);
  EXPECT_EQ(names.size(), api_types().size());
  EXPECT_TRUE(names.contains("io.k8s.api.batch.v1.Job"));
  std::set<std::string> paths;
  for (const auto& [number, path] : fields_in(document[8]))
    paths.insert(fields_in(path).front().second);
  EXPECT_TRUE(paths.contains("/apis/batch/v1/namespaces/{namespace}/jobs/{name}"));
}

TEST(Discovery, OpenApiUrlChangesWithDocument) {
  Discovery one("1"), other("2");
  const auto index = [](Discovery& d) {
    return Json::parse(d.find(*Url::parse("/openapi/v3"))->text);
  };
  const Json a = index(one), b = index(other);
  ASSERT_EQ(a["paths"].size(), openapi_paths().size());
  for (const auto& [path, entry] : a["paths"].items()) {
    const std::string url = entry["serverRelativeURL"];
    EXPECT_NE(url, b["paths"][path]["serverRelativeURL"]);
    const Document* document = one.find(*Url::parse(url));
    ASSERT_NE(document, nullptr) << url;
    EXPECT_EQ("\"" + url.substr(url.find('=') + 1) + "\"", document->etag);
  }
}

TEST(Discovery, EachResourceHasAVerbAndEachGroupIsListed) {
  Discovery discovery("1");
  const Json groups = Json::parse(discovery.find(*Url::parse("/apis"))->text);
  std::set<std::string> listed = {"v1"};
  for (const Json& group : groups["groups"])
    listed.insert(group["preferredVersion"]["groupVersion"].get<std::string>());
  for (const Resource& resource : resources()) {
    EXPECT_FALSE(resource.verbs.empty()) << resource.name;
    EXPECT_TRUE(listed.contains(resource.group_version())) << resource.name;
    EXPECT_EQ(type_of(resource).kind, resource.kind);
    EXPECT_EQ(resource.is_sub(), resource.singular.empty()) << resource.name;
  }
  EXPECT_EQ(discovery.find(*Url::parse("/apis/apps/v1")), nullptr);
}

}  // namespace
}  // namespace muster::api
