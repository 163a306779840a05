#include "text/yaml.hpp"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(Yaml, OneDocument) {
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

TEST(Yaml, SeveralDocuments) {
  auto documents = yaml_to_json("---\na: 1\n---\n# nothing\n---\nb: 2\n...\n");
  ASSERT_TRUE(documents);
  EXPECT_EQ(*documents, (std::vector<std::string>{R"({"a":1})", R"({"b":2})"}));
  EXPECT_TRUE(yaml_to_json("")->empty());
  auto json = yaml_to_json("{\"a\": 1}\n---\n{\"b\": 2}\n");
  ASSERT_TRUE(json);
  EXPECT_EQ(*json, (std::vector<std::string>{R"({"a":1})", R"({"b":2})"}));
}

TEST(Yaml, ErrorsSayWhere) {
  struct {
    const char* yaml;
    const char* begins;
  } rows[] = {
      {"a: 1\nb: [2\n", "line 3, column 1: "},
      {"a: b: c", "line 1, column 5: "},
      {"a: *nowhere", "line 1, column "},
      {"a: .inf", "line 1, column 4: .inf has no JSON value"},
      {"{\"a\": 1,, }", "not a JSON document: parse error at line 1, column 9: "},
      {"? [a]\n: b", "line 1, column 3: a key must be a plain text"},
  };
  for (auto [yaml, begins] : rows) {
    auto documents = yaml_to_json(yaml);
    ASSERT_FALSE(documents) << yaml;
    EXPECT_EQ(documents.error().message.substr(0, std::string(begins).size()), begins) << yaml;
  }
}

TEST(Yaml, WhatGrowsWithoutBoundIsRefused) {
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

TEST(Yaml, DocumentsWithoutEndAreRefused) {
  for (const char* text : {", a", ", three at a time:  x\nmetadata:\n  name: y", "a: b\n---\n, c"})
    EXPECT_FALSE(yaml_to_json(text)) << text;
  EXPECT_EQ(yaml_to_json("---\n---\n---\na: 1\n---\n").value().size(), 1u);
}

}  // namespace
}  // namespace muster
