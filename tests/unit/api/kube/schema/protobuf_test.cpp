// Protobuf bodies are converted to JSON; malformed and unsupported ones are refused.
#include "api/kube/schema/protobuf.hpp"

#include "api/kube/schema/api_types.hpp"
#include "base/text/json.hpp"

#include <gtest/gtest.h>

#include <set>

namespace muster::api {
namespace {

std::string varint(uint64_t n) {
  std::string out;
  for (; n >= 0x80; n >>= 7) out += static_cast<char>((n & 0x7f) | 0x80);
  return out + static_cast<char>(n);
}

std::string number(unsigned field, uint64_t value) {
  return varint(field << 3) + varint(value);
}

std::string bytes(unsigned field, const std::string& value) {
  return varint(field << 3 | 2) + varint(value.size()) + value;
}

std::string framed(const std::string& kind, const std::string& object) {
  return std::string("k8s\0", 4) + bytes(1, bytes(1, "batch/v1") + bytes(2, kind)) +
         bytes(2, object) + bytes(3, "") + bytes(4, "");
}

Json read(const std::string& body) {
  auto text = protobuf_to_json(body);
  EXPECT_TRUE(text.ok()) << text.error().message;
  return text.ok() ? Json::parse(*text) : Json();
}

std::string refused(const std::string& body) {
  auto text = protobuf_to_json(body);
  EXPECT_FALSE(text.ok()) << *text;
  return text.ok() ? "" : text.error().message;
}

const std::string kContainer = bytes(1, "main") + bytes(2, "") + bytes(3, "sh") + bytes(3, "-c") +
                               bytes(3, "") + bytes(7, bytes(1, "A") + bytes(2, "b")) +
                               bytes(8, bytes(2, bytes(1, "cpu") + bytes(2, bytes(1, "100m")))) +
                               number(16, 0);
const std::string kMeta = bytes(1, "j") + bytes(3, "") + number(7, 0) +
                          bytes(8, "") +  // an unset creationTimestamp
                          bytes(11, bytes(1, "app") + bytes(2, "demo"));

TEST(Protobuf, ReadsJob) {
  const std::string pod = bytes(3, "Never") + bytes(2, kContainer) + number(4, 5);
  const std::string spec = number(1, 0) + number(2, 3) + bytes(6, bytes(2, pod));
  const Json job = read(framed("Job", bytes(1, kMeta) + bytes(2, spec) + bytes(3, "")));
  const Json container = {{"name", "main"},
                          {"command", {"sh", "-c", ""}},
                          {"env", {{{"name", "A"}, {"value", "b"}}}},
                          {"resources", {{"requests", {{"cpu", "100m"}}}}},
                          {"stdin", false}};
  const Json expected = {
      {"apiVersion", "batch/v1"},
      {"kind", "Job"},
      {"metadata", {{"name", "j"}, {"generation", 0}, {"labels", {{"app", "demo"}}}}},
      {"spec",
       {{"parallelism", 0},
        {"completions", 3},
        {"template",
         {{"spec",
           {{"restartPolicy", "Never"},
            {"containers", {container}},
            {"terminationGracePeriodSeconds", 5}}}}}}},
      {"status", Json::object()}};
  EXPECT_EQ(job, expected) << job.dump(1);
}

TEST(Protobuf, ReadsNegativeAndRepeatedNumbersAndTimes) {
  const auto spec = [](const std::string& text) { return framed("Job", bytes(2, text)); };
  EXPECT_EQ(read(spec(number(7, static_cast<uint64_t>(-1))))["spec"]["backoffLimit"], -1);
  const auto policy = [&](const std::string& values) {
    const std::string codes = bytes(2, "In") + values;
    const Json rules = read(spec(bytes(11, bytes(1, bytes(1, "Ignore") + bytes(2, codes)))));
    return rules["spec"]["podFailurePolicy"]["rules"][0]["onExitCodes"]["values"];
  };
  EXPECT_EQ(policy(number(3, 3) + number(3, 300)), Json({3, 300}));
  EXPECT_EQ(policy(bytes(3, varint(3) + varint(300))), Json({3, 300}));
  const Json meta = read(framed("Job", bytes(1, bytes(8, number(1, 1'700'000'000)))))["metadata"];
  EXPECT_EQ(meta["creationTimestamp"], "2023-11-14T22:13:20Z");
}

// JSON has a volume's kind next to its name; protobuf has a message in between.
TEST(Protobuf, ReadsVolumeSourceFromNestedMessage) {
  const auto volumes = [](const std::string& source) {
    const std::string pod = bytes(1, bytes(1, "v") + bytes(2, source));
    return read(
        framed("Job", bytes(2, bytes(6, bytes(2, pod)))))["spec"]["template"]["spec"]["volumes"];
  };
  EXPECT_EQ(volumes(bytes(1, bytes(1, "/data") + bytes(2, "Directory"))),
            Json::parse(R"([{"name": "v", "hostPath": {"path": "/data", "type": "Directory"}}])"));
  EXPECT_EQ(
      volumes(bytes(2, bytes(1, "Memory") + bytes(2, bytes(1, "1Gi")))),
      Json::parse(R"([{"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}])"));
}

TEST(Protobuf, UnknownNumbersAreLeftOut) {
  const Json job = read(framed("Job", bytes(1, kMeta) + number(999, 1) + bytes(998, "x")));
  EXPECT_EQ(job["metadata"]["name"], "j");
  EXPECT_EQ(job.size(), 3u);
}

TEST(Protobuf, FieldSupportedOnlyInJsonIsRefusedByName) {
  const std::string pod = bytes(1, bytes(1, "v") + bytes(2, bytes(7, "a share")));
  EXPECT_EQ(refused(framed("Job", bytes(2, bytes(6, bytes(2, pod))))),
            "spec.template.spec.volumes.nfs: not supported in protobuf: send JSON");
  EXPECT_EQ(refused(framed("CronJob", "")),
            "objects of kind \"CronJob\" are accepted only as JSON");
}

TEST(Protobuf, MalformedMessagesAreRefused) {
  EXPECT_NE(refused("{}").find("k8s"), std::string::npos);
  EXPECT_NE(refused(std::string("k8s\0\xff", 5)).find("invalid protobuf"), std::string::npos);
  EXPECT_EQ(refused(framed("Job", bytes(1, "\x0a\x7f"))), "metadata: invalid protobuf");
  EXPECT_EQ(refused(framed("Job", number(1, 5))), "metadata: invalid protobuf");
  EXPECT_EQ(refused(framed("Job", bytes(2, number(6, 1)))), "spec.template: invalid protobuf");
  EXPECT_EQ(refused(framed("Job", bytes(1, bytes(8, number(1, UINT64_MAX / 2))))),
            "metadata.creationTimestamp: invalid protobuf");
}

TEST(Protobuf, FieldNumbersAreUnique) {
  for (const ApiType& type : api_types()) {
    std::set<unsigned> seen;
    for (const ApiField& field : type.fields)
      if (field.number != 0) {
        EXPECT_TRUE(seen.insert(field.number).second) << type.name << "." << field.name;
      }
  }
}

}  // namespace
}  // namespace muster::api
