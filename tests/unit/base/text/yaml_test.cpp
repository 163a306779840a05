#include "base/text/yaml.hpp"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(Yaml, ConvertsDocumentToJson) {
  struct {
    const char* yaml;
    const char* json;
  } rows[] = {
      {"a: 1", R"({"a":1})"},
      {"a: '1'", R"({"a":"1"})"},
      {"a: \"true\"", R"({"a":"true"})"},
      {"a: true", R"({"a":true})"},
      {"a: yes", R"({"a":true})"},
      {"a: off", R"({"a":false})"},
      {"a:", R"({"a":null})"},
      {"a: ~", R"({"a":null})"},
      {"a: ''", R"({"a":""})"},
      {"a: -7", R"({"a":-7})"},
      {"a: 0x1f", R"({"a":31})"},
      {"a: 0644", R"({"a":420})"},
      {"a: 0o17", R"({"a":15})"},
      {"a: 1_000", R"({"a":1000})"},
      {"a: 1.5", R"({"a":1.5})"},
      {"a: 1e3", R"({"a":1000})"},
      {"a: 1.2.3", R"({"a":"1.2.3"})"},
      {"a: 500m", R"({"a":"500m"})"},
      {"a: 2026-03-01", R"({"a":"2026-03-01"})"},
      {"a: -n", R"({"a":"-n"})"},
      {"- ", "[null]"},
      {"a: !!str 5", R"({"a":"5"})"},
      {"5: x", R"({"5":"x"})"},
      {"a: |\n  x\n  5\n", R"({"a":"x\n5\n"})"},
      {"a: [sh, -c, \"exit 0\"]", R"({"a":["sh","-c","exit 0"]})"},
      {"- {a: b}\n- c", R"([{"a":"b"},"c"])"},
      {"a: 1\nb: 2\na: 3", R"({"a":1,"b":2,"a":3})"},
      {"x: &x {p: 1, q: 2}\ny: {<<: *x, q: 3}", R"({"x":{"p":1,"q":2},"y":{"q":3,"p":1}})"},
      {"--- {a: b, c: 5}", R"({"a":"b","c":5})"},
      {"  {\"a\": 1, \"a\": 2}", "  {\"a\": 1, \"a\": 2}"},
      {"a: gr\xc3\xbc\xc3\x9f", "{\"a\":\"gr\xc3\xbc\xc3\x9f\"}"},
  };
  for (auto [yaml, json] : rows) {
    auto documents = yaml_to_json(yaml);
    ASSERT_TRUE(documents) << yaml << ": " << documents.error().message;
    ASSERT_EQ(documents->size(), 1u) << yaml;
    EXPECT_EQ(documents->front(), json) << yaml;
  }
}

TEST(Yaml, ConvertsSeveralDocuments) {
  auto documents = yaml_to_json("---\na: 1\n---\n# nothing\n---\nb: 2\n...\n");
  ASSERT_TRUE(documents);
  EXPECT_EQ(*documents, (std::vector<std::string>{R"({"a":1})", R"({"b":2})"}));
  EXPECT_TRUE(yaml_to_json("")->empty());
  auto json = yaml_to_json("{\"a\": 1}\n---\n{\"b\": 2}\n");
  ASSERT_TRUE(json);
  EXPECT_EQ(*json, (std::vector<std::string>{R"({"a":1})", R"({"b":2})"}));
}

TEST(Yaml, ErrorsNameLineAndColumn) {
  struct {
    const char* yaml;
    const char* begins;
  } rows[] = {
      {"a: 1\nb: [2\n", "line 3, column 1: "},
      {"a: b: c", "line 1, column 5: "},
      {"a: *nowhere", "line 1, column "},
      {"a: .inf", "line 1, column 4: .inf has no JSON value"},
      {"{\"a\": 1,, }", "line 1, column 9: not a JSON document: syntax error"},
      {"a: 1\n---\nb: .inf", "line 3, column 4: .inf has no JSON value"},
      {"? [a]\n: b", "line 1, column 3: a map key must be a scalar"},
  };
  for (auto [yaml, begins] : rows) {
    auto documents = yaml_to_json(yaml);
    ASSERT_FALSE(documents) << yaml;
    EXPECT_EQ(documents.error().message.substr(0, std::string(begins).size()), begins) << yaml;
  }
}

// Each document as JSON, or as LINE:COLUMN and the problem.
std::vector<std::string> read(const std::string& yaml) {
  std::vector<std::string> out;
  for (const YamlDocument& one : yaml_documents(yaml))
    out.push_back(one.problem.empty() ? one.json
                                      : std::to_string(one.place.line) + ":" +
                                            std::to_string(one.place.column) + ": " + one.problem);
  return out;
}

TEST(Yaml, AnErrorDoesNotHideTheOtherDocuments) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(read("a: 1\n---\nb: c: d\n---\ne: .inf\n--- {f: 2}\n---\ng: 3\n...\nh: 4\n"),
            (Texts{R"({"a":1})", "3:5: illegal map value", "5:4: .inf has no JSON value",
                   R"({"f":2})", R"({"g":3})", R"({"h":4})"}));
  EXPECT_EQ(read("# about\n%YAML 1.2\n---\na: 1\n"), (Texts{R"({"a":1})"}));
  EXPECT_EQ(read("a: |\n  x\n--- \nb: '---'\nc: ---x\n"),
            (Texts{R"({"a":"x\n"})", R"({"b":"---","c":"---x"})"}));
  EXPECT_EQ(read("a: 1\r\n---\r\nb: 2\r\n"), (Texts{R"({"a":1})", R"({"b":2})"}));
}

TEST(Yaml, TabsAndTemplatesAreExplained) {
  const std::string tab = "this line is indented with a tab; YAML allows only spaces";
  const std::string helm =
      "this looks like a Helm template; render it first: helm template CHART | muster apply -f -";
  struct {
    const char* yaml;
    std::string expected;
  } rows[] = {
      {"a:\n\tb: 1\n", "2:1: " + tab},
      {"a:\n  b: 1\n\tc: 2\n", "3:1: " + tab},
      {"a:\n  \tb: 1\n", "2:3: " + tab},
      {"a:\n\tb:\n\t\tc: 1\n", "2:1: " + tab},
      {"rules:\n- a: 1\n\tb: 2\n", "3:1: " + tab},
      {"a: {{ .Values.a }}\nb: 1\n", "1:4: " + helm},
      {"a:\n  b: {{ .Values.b | quote }}\n", "2:6: " + helm},
      {"{{- if .Values.a }}\na: 1\n{{- end }}\n", "1:1: " + helm},
      {"a: 1\n{{- with .Values.b }}\nb: 2\n{{- end }}\n", "2:1: " + helm},
      // Template syntax is not the cause of the error, or there is no error at all.
      {"a: |\n  x {{ y }}\nb: c: d\n", "3:5: illegal map value"},
      {"a: |\n  x\n  \ty\n", R"({"a":"x\n\ty\n"})"},
      {"a: '{{ b }}'\n", R"({"a":"{{ b }}"})"},
      {"{\n\t\"a\": 1\n}\n", "{\n\t\"a\": 1\n}\n"},
  };
  for (const auto& [yaml, expected] : rows)
    EXPECT_EQ(read(yaml), std::vector<std::string>{expected}) << yaml;
}

TEST(Yaml, AliasBombsAndDeepNestingAreRefused) {
  std::string bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c < 'l'; ++c) {
    std::string before(1, static_cast<char>(c - 1));
    bomb += std::string(1, c) + ": &" + c + " [";
    for (int i = 0; i < 10; ++i) bomb += (i ? ", *" : "*") + before;
    bomb += "]\n";
  }
  EXPECT_FALSE(yaml_to_json(bomb));
  EXPECT_FALSE(yaml_to_json(std::string(10'000, '[')));
  EXPECT_FALSE(yaml_to_json("a: " + std::string(200, '[') + std::string(200, ']')));
}

TEST(Yaml, TextThatParserWouldReadForeverIsRefused) {
  for (const char* text : {", a", ", three at a time:  x\nmetadata:\n  name: y", "a: b\n---\n, c"})
    EXPECT_FALSE(yaml_to_json(text)) << text;
  EXPECT_EQ(yaml_to_json("---\n---\n---\na: 1\n---\n").value().size(), 1u);
}

}  // namespace
}  // namespace muster
