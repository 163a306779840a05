#include "base/text/yaml_fields.hpp"

#include "base/text/yaml_entries.hpp"

#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

// "LINE:COLUMN", with a "?" if the field itself is missing.
std::string found(const YamlDocument& document, const std::string& path) {
  const YamlFields::Found at = YamlFields(document).find(path);
  return std::to_string(at.place.line) + ":" + std::to_string(at.place.column) +
         (at.exact ? "" : "?");
}

TEST(YamlFields, FindsLineAndColumnOfKeysAndItems) {
  const auto documents = yaml_documents(
      "kind: Job\n"
      "---\n"
      "# The second one.\n"
      "metadata:\n"
      "  name: a\n"
      "  annotations: {muster.dev/gang: 'true', muster.dev: x}\n"
      "spec:\n"
      "  completions: 3\n"
      "  containers:\n"
      "  - name: main\n"
      "    args:\n"
      "    - x\n"
      "    - 'y'\n"
      "  -  name: other\n"
      "     env: [{name: A}, {name: B}]\n"
      "  completions: 4\n");
  ASSERT_EQ(documents.size(), 2u);
  struct {
    const char* path;
    const char* place;
  } rows[] = {
      {"", "4:1"},
      {"spec", "7:1"},
      {"metadata.name", "5:3"},
      {"spec.completions", "16:3"},  // the last one wins
      {"spec.containers[0]", "10:5"},
      {"spec.containers[0].args[1]", "13:7"},
      {"spec.containers[1]", "14:6"},
      {"spec.containers[1].env[1].name", "15:24"},
      {"metadata.annotations[muster.dev/gang]", "6:17"},
      {"metadata.annotations.muster.dev/gang", "6:17"},
      {"metadata.annotations[muster.dev]", "6:42"},
      {"spec.containers[2].name", "9:3?"},
      {"spec.containers[1].command", "14:6?"},
      {"spec.parallelism", "7:1?"},
      {"status", "4:1?"},
      {"spec.containers[x]", "9:3?"},
      {"spec.containers[", "9:3?"},
      {"spec.completions.deeper", "16:3?"},
  };
  for (const auto& [path, place] : rows) EXPECT_EQ(found(documents[1], path), place) << path;
  EXPECT_EQ(found(documents[0], "kind"), "1:1");
}

TEST(YamlFields, FindsPlacesInMergedMapsAndJson) {
  const auto merged = yaml_documents("x: &x\n  p: 1\n  q: 2\ny:\n  <<: *x\n  q: 3\n");
  EXPECT_EQ(found(merged[0], "y.p"), "2:3");
  EXPECT_EQ(found(merged[0], "y.q"), "6:3");
  const auto json = yaml_documents("{\n\t\"a\": {\n\t\t\"b\": [1, 2]}}\n");
  EXPECT_EQ(found(json[0], "a.b"), "3:3");
  EXPECT_EQ(found(json[0], "a.b[1]"), "3:12");
  EXPECT_EQ(found(YamlDocument{}, "a"), "1:1?");
}

TEST(YamlFields, ReportsTextThatParserWouldReadForever) {
  for (const char* text : {", a: 1", "{}}, \"a", "{\"a\": 1}},\"b\"", "{\"a\": {}}}, \"b#\""}) {
    for (const YamlDocument& document : yaml_documents(text)) {
      EXPECT_NE(document.problem, "") << text;
      EXPECT_EQ(found(document, "a").back(), '?') << text;
    }
    EXPECT_FALSE(yaml_entries(text).ok()) << text;
  }
}

}  // namespace
}  // namespace muster
