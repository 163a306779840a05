// Protobuf bodies are converted to JSON; malformed and unsupported ones are refused.
#include "api/kube/schema/protobuf.hpp"

#include "api/kube/schema/api_types.hpp"
#include "base/text/json.hpp"
#include "tests/unit/api/kube/random_object.hpp"

#include <gtest/gtest.h>

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
                          {"resources", {{"requests", {{"cpu", "100m"}}}}}};
  const Json expected = {{"apiVersion", "batch/v1"},
                         {"kind", "Job"},
                         {"metadata", {{"name", "j"}, {"labels", {{"app", "demo"}}}}},
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

TEST(Protobuf, NamesOfReferencesAreInNestedMessages) {
  // LocalObjectReference, which JSON has inline.
  const std::string selector = bytes(1, bytes(1, "c")) + bytes(2, "k");
  const std::string container = bytes(1, "main") +
                                bytes(7, bytes(1, "A") + bytes(3, bytes(3, selector))) +
                                bytes(7, bytes(1, "B") + bytes(3, bytes(4, selector))) +
                                bytes(19, bytes(2, bytes(1, bytes(1, "c"))));
  const std::string volume = bytes(1, "v") + bytes(2, bytes(19, bytes(1, bytes(1, "c"))));
  const std::string pod = bytes(1, volume) + bytes(2, container);
  const Json job = read(framed("Job", bytes(2, bytes(6, bytes(2, pod)))));
  const Json key = {{"name", "c"}, {"key", "k"}};
  const Json expected = {{"volumes", {{{"name", "v"}, {"configMap", {{"name", "c"}}}}}},
                         {"containers",
                          {{{"name", "main"},
                            {"env",
                             {{{"name", "A"}, {"valueFrom", {{"configMapKeyRef", key}}}},
                              {{"name", "B"}, {"valueFrom", {{"secretKeyRef", key}}}}}},
                            {"envFrom", {{{"configMapRef", {{"name", "c"}}}}}}}}}};
  EXPECT_EQ(job["spec"]["template"]["spec"], expected) << job.dump(1);
  const std::string back = json_to_protobuf(job).value_or("");
  EXPECT_NE(back.find(bytes(3, bytes(3, selector))), std::string::npos);
  EXPECT_NE(back.find(bytes(4, selector)), std::string::npos);
  EXPECT_NE(back.find(bytes(2, bytes(1, bytes(1, "c")))), std::string::npos);
  EXPECT_NE(back.find(bytes(19, bytes(1, bytes(1, "c")))), std::string::npos);
}

TEST(Protobuf, UnknownNumbersAreLeftOut) {
  const Json job = read(framed("Job", bytes(1, kMeta) + number(999, 1) + bytes(998, "x")));
  EXPECT_EQ(job["metadata"]["name"], "j");
  EXPECT_EQ(job.size(), 3u);
}

// What muster never takes is there, so that it is refused as in JSON.
TEST(Protobuf, RefusedFieldsArePresent) {
  const std::string pod = bytes(1, bytes(1, "v") + bytes(2, bytes(7, "a share")));
  const Json job = read(framed("Job", bytes(2, bytes(6, bytes(2, pod)))));
  EXPECT_TRUE(job["spec"]["template"]["spec"]["volumes"][0].contains("nfs"));
  EXPECT_EQ(refused(framed("Deployment", "")),
            "objects of kind \"Deployment\" are accepted only as JSON");
}

TEST(Protobuf, OptionsOfADeletionHaveTheVersionOfAnyGroup) {
  const Json options = read(framed("DeleteOptions", bytes(4, "Background")));
  EXPECT_EQ(options["propagationPolicy"], "Background");
}

TEST(Protobuf, TimesMayLieBefore1970) {
  const auto lease = [](const std::string& spec) {
    const std::string frame = std::string("k8s\0", 4) +
                              bytes(1, bytes(1, "coordination.k8s.io/v1") + bytes(2, "Lease")) +
                              bytes(2, bytes(2, spec));
    return read(frame)["spec"];
  };
  const auto minus = [](int64_t seconds) { return number(1, static_cast<uint64_t>(seconds)); };
  EXPECT_EQ(lease(bytes(3, minus(-1) + number(2, 5000)))["acquireTime"],
            "1969-12-31T23:59:59.000005Z");
  EXPECT_EQ(lease(bytes(3, number(2, 0)))["acquireTime"], "1970-01-01T00:00:00.000000Z");
  EXPECT_FALSE(lease(bytes(3, "")).contains("acquireTime"));
  EXPECT_FALSE(lease(bytes(3, minus(-62'135'596'800))).contains("acquireTime"));
}

// Every field of every kind, there and back.
TEST(Protobuf, ObjectsComeBackAsTheyWere) {
  size_t kinds = 0;
  for (const ApiType& type : api_types()) {
    if (type.group_version.empty()) continue;
    ++kinds;
    for (uint64_t seed = 0; seed < 50; ++seed) {
      Json object = testing::RandomObject(seed).of(type);
      object["apiVersion"] = type.group_version;
      object["kind"] = type.kind;
      const auto written = json_to_protobuf(object);
      ASSERT_TRUE(written) << type.name;
      ASSERT_EQ(read(*written), object) << type.name << read(*written).dump(1) << object.dump(1);
    }
  }
  EXPECT_GT(kinds, 12u);
}

TEST(Protobuf, ListsAreFramedAsAWhole) {
  const Json item = {{"metadata", {{"name", "j"}}}};
  const Json list = {{"apiVersion", "batch/v1"},
                     {"kind", "JobList"},
                     {"metadata", {{"resourceVersion", "7"}}},
                     {"items", {item, item}}};
  const std::string one = bytes(1, bytes(1, "j"));
  EXPECT_EQ(json_to_protobuf(list),
            framed("JobList", bytes(1, bytes(2, "7")) + bytes(2, one) + bytes(2, one)));
  EXPECT_EQ(json_to_protobuf({{"apiVersion", "meta.k8s.io/v1"}, {"kind", "Table"}}), std::nullopt);
}

TEST(Protobuf, EventsOfAWatchHaveTheirLengthInFront) {
  const std::string event = bytes(1, "ADDED") + bytes(2, bytes(1, "object"));
  EXPECT_EQ(protobuf_event("ADDED", "object"),
            std::string("\0\0\0", 3) + static_cast<char>(event.size()) + event);
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

}  // namespace
}  // namespace muster::api
