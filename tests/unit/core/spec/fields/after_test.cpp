#include "core/spec/fields/after.hpp"

#include "core/spec/fields/annotations.hpp"
#include "core/spec/rules/defaults.hpp"
#include "core/spec/rules/update.hpp"

#include <gtest/gtest.h>

namespace muster::core {
namespace {

TEST(After, ReadsEachKind) {
  const auto all = parse_after("ok:prep,notok:a.b,any:c,each:d,corr:e");
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(*all, (std::vector<After>{{Needed::ok, "prep"},
                                      {Needed::notok, "a.b"},
                                      {Needed::any, "c"},
                                      {Needed::each, "d"},
                                      {Needed::each, "e"}}));
}

TEST(After, ErrorsNameInvalidEntry) {
  const std::string form =
      "must be ok:JOB, notok:JOB, any:JOB or each:JOB, or several of them with commas";
  const std::pair<const char*, std::string> cases[] = {
      {"", "``: " + form},
      {"prep", "`prep`: " + form},
      {"ok:", "`ok:`: " + form},
      {"OK:prep", "`OK:prep`: " + form},
      {"afterok:prep", "`afterok:prep`: " + form},
      {"ok:a,", "``: " + form},
      {"ok:a,any:a", "`any:a`: the job is named twice"},
  };
  for (const auto& [text, why] : cases) {
    const auto all = parse_after(text);
    ASSERT_FALSE(all.ok()) << text;
    EXPECT_EQ(all.error().message, why);
  }
  std::string many;
  for (size_t i = 0; i < kAfterMax; ++i) many += "ok:j" + std::to_string(i) + ",";
  EXPECT_TRUE(parse_after(many.substr(0, many.size() - 1)).ok());
  EXPECT_EQ(parse_after(many + "ok:z").error().message, "must have at most 100 entries");
}

JobMeta meta(const std::string& after) {
  JobMeta meta;
  meta.name = "j";
  if (!after.empty()) meta.annotations.emplace(kAfterKey, after);
  return meta;
}

TEST(After, AJobCannotWaitForItself) {
  Violations found;
  validate_after(meta("ok:a,any:j"), found);
  ASSERT_EQ(found.list().size(), 1u);
  EXPECT_EQ(found.list()[0].path, "metadata.annotations[muster.dev/after]");
  EXPECT_EQ(found.list()[0].detail, "must not name the job itself");
}

TEST(After, EachNeedsIndexesThatStartOneByOne) {
  const std::string together =
      "each:JOB starts indexes one by one, but the pods of this job start together "
      "(muster.dev/gang or muster.dev/mpi)";
  struct {
    const char* after;
    const char* mode;
    const char* key;  // of another annotation; empty: none
    const char* value;
    std::string why;  // empty: accepted
  } cases[] = {
      {"each:a", "Indexed", "", "", ""},
      {"ok:b,each:a", "NonIndexed", "", "", "each:JOB requires indexed completion mode"},
      {"ok:a", "NonIndexed", "", "", ""},
      {"each:a", "Indexed", "muster.dev/gang", "true", together},
      {"each:a", "Indexed", "muster.dev/gang", "false", ""},
      {"each:a", "Indexed", "muster.dev/mpi", "auto", together},
      {"ok:a", "Indexed", "muster.dev/gang", "true", ""},
  };
  for (const auto& [after, mode, key, value, why] : cases) {
    JobMeta job = meta(after);
    if (*key != 0) job.annotations.emplace(key, value);
    JobSpec spec;
    spec.completion_mode = mode;
    Violations found;
    validate_each(job.annotations, spec, found);
    EXPECT_EQ(found.list().empty() ? "" : found.list()[0].detail, why) << after << " " << key;
  }
}

TEST(After, MayBeRemovedAndNotChanged) {
  auto changes = [](const std::string& to) {
    JobSpec spec;
    JobMeta before = meta("ok:a"), after = meta(to);
    spec.pod.containers.resize(1);
    apply_defaults(before, spec);
    apply_defaults(after, spec);
    size_t about = 0;
    for (const Violation& one : validate_update(before, spec, after, spec, {}).take())
      about += one.path == "metadata.annotations[muster.dev/after]" &&
               one.detail == "field is immutable";
    return about;
  };
  EXPECT_EQ(changes(""), 0u);
  EXPECT_EQ(changes("ok:a"), 0u);
  EXPECT_EQ(changes("ok:b"), 1u);
}

}  // namespace
}  // namespace muster::core
