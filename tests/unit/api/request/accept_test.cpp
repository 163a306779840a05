// The header Accept decides the form and the encoding of an answer.
#include "api/request/accept.hpp"

#include <gtest/gtest.h>

namespace muster::api {
namespace {

TEST(Accept, TakesTheFirstThatCanBeSent) {
  const std::string partial = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
  struct {
    std::string header;
    std::optional<Accepted> expected;
  } rows[] = {
      {"", Accepted{Form::plain, Encoding::json, true}},
      {"*/*", Accepted{Form::plain, Encoding::json, true}},
      {"application/json", Accepted{Form::plain, Encoding::json, true}},
      {"application/yaml", Accepted{Form::plain, Encoding::yaml, false}},
      {"application/vnd.kubernetes.protobuf", Accepted{Form::plain, Encoding::protobuf, false}},
      {"application/vnd.kubernetes.protobuf, */*", Accepted{Form::plain, Encoding::protobuf, true}},
      {"application/json, application/vnd.kubernetes.protobuf",
       Accepted{Form::plain, Encoding::json, true}},
      {"application/json;q=0.5, application/vnd.kubernetes.protobuf",
       Accepted{Form::plain, Encoding::protobuf, true}},
      {"application/vnd.kubernetes.protobuf;q=0, application/json",
       Accepted{Form::plain, Encoding::json, true}},
      {"application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
       Accepted{Form::table, Encoding::json, true}},
      {"application/vnd.kubernetes.protobuf;as=Table, application/json",
       Accepted{Form::plain, Encoding::json, true}},
      {"application/vnd.kubernetes.protobuf" + partial + ", application/json" + partial,
       Accepted{Form::metadata, Encoding::protobuf, true}},
      {"application/vnd.kubernetes.protobuf" + partial + ", application/json",
       Accepted{Form::metadata, Encoding::protobuf, false}},
      {"application/json;as=Nonsense, application/json",
       Accepted{Form::plain, Encoding::json, true}},
      {"application/json;as=Nonsense", std::nullopt},
      {"text/html", std::nullopt},
      {"application/json;q=0", std::nullopt},
      {"text/html, application/xhtml+xml, application/xml;q=0.9, */*;q=0.8",
       Accepted{Form::plain, Encoding::json, true}},
  };
  for (const auto& [header, expected] : rows) {
    const auto found = accepted(header, false);
    ASSERT_EQ(found.has_value(), expected.has_value()) << header;
    if (!found) continue;
    EXPECT_EQ(found->form, expected->form) << header;
    EXPECT_EQ(found->encoding, expected->encoding) << header;
    EXPECT_EQ(found->json_too, expected->json_too) << header;
  }
}

TEST(Accept, WatchesHaveNoYaml) {
  EXPECT_FALSE(accepted("application/yaml", true));
  EXPECT_EQ(accepted("application/yaml, application/json", true)->encoding, Encoding::json);
}

}  // namespace
}  // namespace muster::api
