#include "api/view/query/selector.hpp"

#include "core/spec/fields/job_spec.hpp"

#include <gtest/gtest.h>

namespace muster::api {
namespace {

bool matches(const std::string& text, const core::StringMap& labels) {
  auto selector = Selector::labels(text);
  EXPECT_TRUE(selector.ok()) << text;
  return selector.ok() &&
         selector->matches([&](std::string_view key) -> std::optional<std::string_view> {
           auto it = labels.find(std::string(key));
           if (it == labels.end()) return std::nullopt;
           return it->second;
         });
}

TEST(Selector, MatchesLabels) {
  const core::StringMap labels{{"app", "web"}, {"example.com/tier", "front"}, {"empty", ""}};
  const struct {
    const char* text;
    bool expected;
  } table[] = {
      {"", true},
      {"app=web", true},
      {"app==web", true},
      {"app = web", true},
      {"app=db", false},
      {"app!=db", true},
      {"app!=web", false},
      {"other!=x", true},
      {"app", true},
      {"other", false},
      {"!other", true},
      {"!app", false},
      {"app in (db,web)", true},
      {"app in (db, cache)", false},
      {"app notin (db,cache)", true},
      {"app notin (web)", false},
      {"other notin (web)", true},
      {"example.com/tier=front,app=web", true},
      {"example.com/tier=front,app=db", false},
      {"app in (web,db),!other,empty=", true},
      {"empty in ()", true},
  };
  for (const auto& row : table) EXPECT_EQ(matches(row.text, labels), row.expected) << row.text;
}

TEST(Selector, RejectsMalformedLabelSelectors) {
  for (const char* text : {"=x", "a=b=c", "a in b", "a in (b", "a in b)", "a in ((b))", "a,,b", ",",
                           "a b", "(a)", "a like (b)", "!", "a=b c"})
    EXPECT_FALSE(Selector::labels(text).ok()) << text;
}

TEST(Selector, P10LimitsRequirementsAndLength) {
  std::string many = "!k0", values = "app in (web";
  for (size_t i = 1; i < Selector::kRulesMax; ++i) many += ",!k" + std::to_string(i);
  EXPECT_TRUE(Selector::labels(many).ok());
  const auto more = Selector::labels(many + ",!another");
  ASSERT_FALSE(more.ok());
  EXPECT_NE(more.error().message.find("more than 64 requirements, the maximum"), std::string::npos)
      << more.error().message;
  EXPECT_FALSE(Selector::fields(std::string(45'000, ','), Kind::pod).ok());
  std::string names = "metadata.name!=a";
  for (size_t i = 0; i < Selector::kRulesMax; ++i) names += ",metadata.name!=b";
  EXPECT_FALSE(Selector::fields(names, Kind::pod).ok());
  // Values of one key are limited by the length only.
  for (int i = 0; values.size() < Selector::kBytesMax - 10; ++i) values += "," + std::to_string(i);
  EXPECT_TRUE(matches(values + ")", {{"app", "web"}}));
  EXPECT_FALSE(matches(values + ")", {{"app", "db"}}));
  const auto longer = Selector::labels(values + std::string(10, '0') + ")");
  ASSERT_FALSE(longer.ok());
  EXPECT_NE(longer.error().message.find("at most 4096 are allowed"), std::string::npos)
      << longer.error().message;
  EXPECT_TRUE(matches("app in (web,db,web,a)", {{"app", "db"}})) << "in any order, and repeated";
  EXPECT_EQ(Selector::labels("app in (web,web)").value().only("app"), "web");
}

TEST(Selector, AcceptsOnlyFieldsOfKind) {
  EXPECT_TRUE(Selector::fields("metadata.name=a,metadata.namespace!=b", Kind::job).ok());
  EXPECT_TRUE(Selector::fields("spec.nodeName==n,status.phase!=Running", Kind::pod).ok());
  EXPECT_TRUE(Selector::fields("involvedObject.kind=Job,involvedObject.uid=u", Kind::event).ok());
  for (auto [text, kind] : {std::pair{"spec.nodeName=n", Kind::job},
                            {"status.phase", Kind::pod},
                            {"x=y", Kind::node},
                            {"=x", Kind::pod}})
    EXPECT_FALSE(Selector::fields(text, kind).ok()) << text;
  EXPECT_EQ(Selector::fields("spec.foo=1", Kind::pod).error().message,
            "field label not supported: spec.foo");
  EXPECT_EQ(Selector::fields("metadata.name=a", Kind::pod).value().only("metadata.name"), "a");
}

}  // namespace
}  // namespace muster::api
