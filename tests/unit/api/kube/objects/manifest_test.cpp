#include "api/kube/objects/manifest.hpp"

#include "api/kube/objects/refused_fields.hpp"
#include "api/kube/objects/status_object.hpp"
#include "base/text/time_text.hpp"
#include "tests/unit/api/admit.hpp"

#include <gtest/gtest.h>

namespace muster::api {
namespace {

using nlohmann::json;

const std::string kUid = "2f6b7c1e-8f6e-4c1a-9b1e-0c9d8e7f6a5b";
const Admission kAdmission{"default", kUid, 1'772'366'400'123, "x2x2x"};

json base() {
  return json::parse(R"({"apiVersion": "batch/v1", "kind": "Job",
    "metadata": {"name": "v"},
    "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [
      {"name": "main", "image": "busybox", "command": ["sh", "-c", "exit 0"]}]}}}})");
}

json patched(const char* patch) {
  json job = base();
  job.merge_patch(json::parse(patch));
  return job;
}

Result<core::JobObjectPtr> admit(const json& manifest) {
  auto parsed = parse_job(manifest.dump(), FieldValidation::strict);
  if (!parsed) return parsed.error();
  return admit_job(std::move(*parsed), kAdmission);
}

Result<core::JobObjectPtr> update(const core::JobObject& old_job, const char* patch) {
  json manifest = json::parse(old_job.json);
  manifest.merge_patch(json::parse(patch));
  auto parsed = parse_job(manifest.dump(), FieldValidation::strict);
  if (!parsed) return parsed.error();
  return update_job(std::move(*parsed), old_job, {false, 1, true});
}

std::string refusal(const Result<core::JobObjectPtr>& result) {
  if (result.ok()) return "accepted";
  if (result.error().violations.empty()) return result.error().message;
  return invalid_message("jobs", "v", result.error());
}

TEST(Manifest, AdmissionWritesDefaultsAndServerFields) {
  auto job = admit(patched(R"({"metadata": {"annotations": {"a": "b"}}, "status": {"active": 3},
                               "spec": {"template": {"spec": {"dnsPolicy": "Default"}}}})"));
  ASSERT_TRUE(job) << refusal(job);
  json labels = {{"batch.kubernetes.io/controller-uid", kUid},
                 {"controller-uid", kUid},
                 {"batch.kubernetes.io/job-name", "v"},
                 {"job-name", "v"}};
  json expected = {
      {"apiVersion", "batch/v1"},
      {"kind", "Job"},
      {"metadata",
       {{"name", "v"},
        {"namespace", "default"},
        {"uid", kUid},
        {"generation", 1},
        {"creationTimestamp", "2026-03-01T12:00:00Z"},
        {"labels", labels},
        {"annotations", {{"a", "b"}}}}},
      {"spec",
       {{"parallelism", 1},
        {"completions", 1},
        {"backoffLimit", 6},
        {"completionMode", "NonIndexed"},
        {"suspend", false},
        {"manualSelector", false},
        {"podReplacementPolicy", "TerminatingOrFailed"},
        {"selector", {{"matchLabels", {{"batch.kubernetes.io/controller-uid", kUid}}}}},
        {"template",
         {{"metadata", {{"labels", labels}}},
          {"spec",
           {{"restartPolicy", "Never"},
            {"terminationGracePeriodSeconds", 30},
            {"dnsPolicy", "Default"},
            {"schedulerName", "default-scheduler"},
            {"securityContext", json::object()},
            {"containers",
             {{{"name", "main"},
               {"image", "busybox"},
               {"imagePullPolicy", "Always"},
               {"resources", json::object()},
               {"terminationMessagePath", "/dev/termination-log"},
               {"terminationMessagePolicy", "File"},
               {"command", {"sh", "-c", "exit 0"}}}}}}}}}}}};
  EXPECT_EQ(json::parse((*job)->json), expected) << json::parse((*job)->json).dump(1);
}

TEST(Manifest, StoredJobLoadsUnchanged) {
  auto job = admit(patched(R"({"metadata": {"finalizers": ["a.io/f"]},
    "spec": {"completionMode": "Indexed", "completions": 5, "backoffLimitPerIndex": 1,
      "template": {"metadata": {"annotations": {"x": "y"}}, "spec": {
        "nodeSelector": {"zone": "a"}, "priority": 7,
        "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 5,
                         "effect": "NoExecute"}],
        "containers": [{"name": "main", "command": ["true"], "workingDir": "/", "args": ["x"],
          "ports": [{"containerPort": 80}],
          "env": [{"name": "A", "value": "1"},
                  {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                  {"name": "C", "valueFrom": {
                    "secretKeyRef": {"name": "db", "key": "password", "optional": true}}}],
          "resources": {"requests": {"cpu": 2, "memory": "1Gi"}}}]}}}})"));
  ASSERT_TRUE(job) << refusal(job);
  core::JobObjectPtr loaded = load_job((*job)->json);
  EXPECT_EQ(loaded->meta, (*job)->meta);
  EXPECT_EQ(loaded->spec, (*job)->spec);
  EXPECT_EQ(loaded->json, (*job)->json);
  const auto& main = loaded->spec.pod.containers[0];
  EXPECT_EQ(main.resources.requests.at("cpu"), "2");
  EXPECT_EQ(main.env[1].field_path, "metadata.name");
  const core::SecretRef secret{"db", "password", true};
  EXPECT_EQ(main.env[2].secret, secret);
  EXPECT_EQ(loaded->spec.pod.tolerations[0].seconds, 5);
}

TEST(Manifest, GeneratesANameOnRequest) {
  auto job = admit(patched(R"({"metadata": {"name": null, "generateName": "run-"}})"));
  ASSERT_TRUE(job) << refusal(job);
  EXPECT_EQ((*job)->meta.name, "run-x2x2x");
  EXPECT_EQ(json::parse((*job)->json)["metadata"]["generateName"], "run-");
}

TEST(Manifest, ErrorNamesFieldOfWrongType) {
  struct {
    const char* patch;
    const char* message;
  } rows[] = {
      {R"({"spec": {"parallelism": "two"}})",
       "spec.parallelism: found the string \"two\", expected an integer (int32)"},
      {R"({"spec": {"backoffLimit": 3000000000}})",
       "spec.backoffLimit: 3000000000 is out of range for int32"},
      {R"({"spec": {"parallelism": 1.5}})",
       "spec.parallelism: found the number 1.5, expected an integer (int32)"},
      {R"({"spec": {"suspend": "no"}})",
       "spec.suspend: found the string \"no\", expected true or false"},
      {R"({"spec": {"template": []}})", "spec.template: found a list, expected an object"},
      {R"({"metadata": {"labels": {"a": 1}}})",
       "metadata.labels[a]: found the number 1, expected a string: put it in quotes"},
      {R"({"spec": {"template": {"spec": {"containers": [{"name": "a", "args": ["x", 5]}]}}}})",
       "spec.template.spec.containers[0].args[1]: found the number 5, expected a string: put it in "
       "quotes"},
      {R"({"metadata": {"annotations": {"a": {}}}})",
       "metadata.annotations[a]: found an object, expected a string"},
      {R"({"kind": "CronJob"})",
       "apiVersion and kind: found batch/v1 CronJob, expected batch/v1 Job"},
      {R"({"metadata": {"namespace": "other"}})",
       "metadata.namespace: the namespace of the object (other) does not match the namespace of "
       "the request (default)"},
  };
  for (auto [patch, message] : rows) EXPECT_EQ(refusal(admit(patched(patch))), message);
  EXPECT_EQ(refusal(admit(json(5))), "the document: found the number 5, expected an object");
  EXPECT_FALSE(parse_job("{\"a\": ", FieldValidation::strict));
  EXPECT_FALSE(parse_job("", FieldValidation::strict));
  EXPECT_FALSE(parse_job("\xff", FieldValidation::strict));
  EXPECT_FALSE(parse_job(std::string(1'000'000, '['), FieldValidation::strict));
}

TEST(Manifest, UnknownAndDuplicateFieldsFollowFieldValidation) {
  const std::string text = R"({"metadata": {"name": "v"}, "spec": {"paralelism": 2,
    "parallelism": 3, "parallelism": 2,
    "template": {"spec": {"restartPolicy": "Never", "hue": 1, "containers": [
      {"name": "a", "name": "main", "kommand": ["x"]}]}}}})";
  auto strict = parse_job(text, FieldValidation::strict);
  ASSERT_FALSE(strict);
  EXPECT_EQ(strict.error().message,
            "strict decoding error: unknown field \"spec.paralelism\", did you mean "
            "\"parallelism\"? unknown field \"spec.template.spec.containers[0].kommand\", did you "
            "mean \"command\"? unknown field \"spec.template.spec.hue\", duplicate field "
            "\"spec.parallelism\", duplicate field \"spec.template.spec.containers[0].name\"");
  auto warn = parse_job(text, FieldValidation::warn);
  ASSERT_TRUE(warn);
  EXPECT_EQ(warn->warnings.size(), 5u);
  EXPECT_EQ(warn->warnings[0], "unknown field \"spec.paralelism\", did you mean \"parallelism\"?");
  EXPECT_EQ(warn->spec.parallelism, 2);
  EXPECT_FALSE(warn->document["spec"].contains("paralelism"));
  auto ignore = parse_job(text, FieldValidation::ignore);
  ASSERT_TRUE(ignore);
  EXPECT_TRUE(ignore->warnings.empty());
}

TEST(Manifest, ErrorNamesEachFieldThatCannotBeDecoded) {
  auto strict = parse_job(R"({"metadata": {"name": 5}, "spec": {"paralelism": 2, "hue": 1,
    "completions": 1, "completions": "three", "template": {"spec": []}}})",
                          FieldValidation::strict);
  ASSERT_FALSE(strict);
  EXPECT_EQ(strict.error().message,
            "metadata.name: found the number 5, expected a string: put it in quotes; "
            "spec.completions: found the string \"three\", expected an integer (int32); "
            "spec.template.spec: found a list, expected an object; unknown field \"spec.hue\"; "
            "unknown field \"spec.paralelism\", did you mean \"parallelism\"?; duplicate field "
            "\"spec.completions\"");
}

TEST(Manifest, UnknownAnnotationsOfMusterAreKeptWithAWarning) {
  const std::string text = patched(R"({"metadata": {"annotations": {"muster.dev/gangs": "true",
    "muster.dev/colour": "red", "muster.dev/gang": "true", "example.com/gangs": "x",
    "muster.dev/owner-uid": "7", "muster.dev/retry-of": "j"}}})")
                               .dump();
  auto strict = parse_job(text, FieldValidation::strict);
  ASSERT_TRUE(strict);
  EXPECT_EQ(strict->warnings,
            (std::vector<std::string>{
                "metadata.annotations[muster.dev/colour]: unknown annotation",
                "metadata.annotations[muster.dev/gangs]: unknown annotation; did you mean "
                "muster.dev/gang?"}));
  EXPECT_EQ(strict->meta.annotations.size(), 6u);
  EXPECT_EQ(parse_job(text, FieldValidation::warn)->warnings, strict->warnings);
  EXPECT_TRUE(parse_job(text, FieldValidation::ignore)->warnings.empty());
}

TEST(Manifest, ViolationsMakeInvalidStatusWithCauses) {
  auto one = admit(patched(R"({"spec": {"parallelism": -1}})"));
  EXPECT_EQ(refusal(one),
            "Job.batch \"v\" is invalid: spec.parallelism: Invalid value: -1: must be greater than "
            "or equal to 0");
  auto two = admit(patched(R"({"spec": {"parallelism": -1, "completionMode": "Ordered"}})"));
  json status = invalid_status("jobs", "v", two.error());
  EXPECT_EQ(status["message"],
            "Job.batch \"v\" is invalid: [spec.parallelism: Invalid value: -1: must be greater "
            "than or equal to 0, spec.completionMode: Unsupported value: \"Ordered\": supported "
            "values: \"Indexed\", \"NonIndexed\"]");
  EXPECT_EQ(status["code"], 422);
  EXPECT_EQ(status["reason"], "Invalid");
  EXPECT_EQ(status["details"]["causes"][1],
            (json{{"field", "spec.completionMode"},
                  {"reason", "FieldValueNotSupported"},
                  {"message",
                   "Unsupported value: \"Ordered\": supported values: \"Indexed\", "
                   "\"NonIndexed\""}}));
}

TEST(Manifest, BrokenRulesDoNotHideUnsupportedFields) {
  auto both =
      admit(patched(R"({"spec": {"parallelism": -1, "template": {"spec": {"hostPID": true}}}})"));
  ASSERT_FALSE(both);
  ASSERT_EQ(both.error().violations.size(), 2u);
  EXPECT_EQ(both.error().violations[0].path, "spec.parallelism");
  EXPECT_EQ(both.error().violations[1].path, "spec.template.spec.hostPID");
}

TEST(Manifest, ViolationsReadAsInKubernetes) {
  using Kind = Violation::Kind;
  EXPECT_EQ(violation_text({"a", Kind::required, "", "why"}), "a: Required value: why");
  EXPECT_EQ(violation_text({"a", Kind::required, "", ""}), "a: Required value");
  EXPECT_EQ(violation_text({"a", Kind::duplicate, "7", ""}), "a: Duplicate value: 7");
  EXPECT_EQ(violation_text({"a", Kind::not_found, "\"v\"", ""}), "a: Not found: \"v\"");
  EXPECT_EQ(violation_text({"a", Kind::too_many, "21", "must have at most 20 items"}),
            "a: Too many: 21: must have at most 20 items");
  EXPECT_EQ(violation_text({"a", Kind::too_long, "", "may not be more than 63 bytes"}),
            "a: Too long: may not be more than 63 bytes");
  EXPECT_EQ(violation_text({"a", Kind::forbidden, "", "no"}), "a: Forbidden: no");
}

TEST(Manifest, UnsupportedFieldThatChangesPodIsRefusedByName) {
  struct {
    const char* pod;  // merged into the pod's spec
    const char* field;
  } rows[] = {
      {R"({"hostPID": true})", "spec.template.spec.hostPID"},
      {R"({"volumes": [{"name": "v", "nfs": {"server": "s", "path": "/"}}]})",
       "spec.template.spec.volumes[0].nfs"},
      {R"({"securityContext": {"fsGroup": 0}})", "spec.template.spec.securityContext.fsGroup"},
      {R"({"securityContext": {"supplementalGroups": [], "seccompProfile": {"type": "Localhost"}}})",
       "spec.template.spec.securityContext.seccompProfile.type"},
      {R"({"containers": [{"name": "a", "securityContext": {"capabilities": {"add": ["KILL"]}}}]})",
       "spec.template.spec.containers[0].securityContext.capabilities.add"},
      {R"({"containers": [{"name": "a", "envFrom": [{"secretRef": {"name": "s"}}]}]})",
       "spec.template.spec.containers[0].envFrom[0].secretRef"},
      {R"({"containers": [{"name": "a", "livenessProbe": {"exec": {"command": ["x"]}}}]})",
       "spec.template.spec.containers[0].livenessProbe"},
      {R"({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
           [{"topologyKey": "kubernetes.io/hostname"}]}}})",
       "spec.template.spec.affinity.podAntiAffinity."
       "requiredDuringSchedulingIgnoredDuringExecution"},
      {R"({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone",
           "whenUnsatisfiable": "DoNotSchedule"}]})",
       "spec.template.spec.topologySpreadConstraints[0].whenUnsatisfiable"},
      {R"({"schedulerName": "mine"})", "spec.template.spec.schedulerName"},
  };
  for (auto [pod, field] : rows) {
    json manifest = base();
    manifest["spec"]["template"]["spec"].merge_patch(json::parse(pod));
    const std::string message = "Job.batch \"v\" is invalid: " + std::string(field) +
                                ": Forbidden: not supported by this version of muster";
    EXPECT_TRUE(refusal(admit(manifest)).starts_with(message)) << refusal(admit(manifest));
  }
}

TEST(Manifest, FieldsWithoutEffectAreKept) {
  json manifest = base();
  json& pod = manifest["spec"]["template"]["spec"];
  pod.merge_patch(json::parse(R"({"hostNetwork": true, "hostPID": false, "securityContext": {},
    "volumes": [], "serviceAccountName": "s", "imagePullSecrets": [{"name": "x"}],
    "schedulerName": "default-scheduler", "affinity": {}, "enableServiceLinks": false})"));
  auto job = admit(manifest);
  ASSERT_TRUE(job) << refusal(job);
  json kept = json::parse((*job)->json)["spec"]["template"]["spec"];
  for (const char* plain : {"hostPID", "volumes"}) pod.erase(plain);  // as good as absent
  pod.erase("containers");
  for (auto it = pod.begin(); it != pod.end(); ++it) EXPECT_EQ(kept[it.key()], *it) << it.key();
}

// The strictest level of the Pod Security Standards.
TEST(Manifest, TheRestrictedSecurityContextIsAccepted) {
  json manifest = base();
  json& pod = manifest["spec"]["template"]["spec"];
  pod["securityContext"] = {{"runAsNonRoot", true},
                            {"seccompProfile", {{"type", "RuntimeDefault"}}}};
  pod["containers"][0]["securityContext"] = json::parse(
      R"({"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": false, "privileged": false,
          "runAsNonRoot": true, "capabilities": {"drop": ["ALL"]}})");
  auto job = admit(manifest);
  ASSERT_TRUE(job) << refusal(job);
  const core::Container& main = (*job)->spec.pod.containers[0];
  EXPECT_EQ(main.security.escalation, false);
  EXPECT_EQ(main.security.dropped_capabilities, std::vector<std::string>{"ALL"});
  EXPECT_EQ((*job)->spec.pod.security.run_as_non_root, true);
}

TEST(Manifest, IgnoredSchedulingPreferencesAreWarnedOf) {
  json manifest = base();
  EXPECT_TRUE(ignored_preferences(manifest).empty());
  json& pod = manifest["spec"]["template"]["spec"];
  pod.merge_patch(json::parse(R"({"affinity": {
    "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1,
      "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname"}}]},
    "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []},
    "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1,
      "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}]}},
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone",
      "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": {"a": "b"}}}]})"));
  auto job = admit(manifest);
  ASSERT_TRUE(job) << refusal(job);
  EXPECT_EQ((*job)->spec.pod.node_affinity.preferred.size(), 1u);
  const std::vector<std::string> warnings = ignored_preferences(manifest);
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_TRUE(warnings[0].starts_with("spec.template.spec.affinity.podAntiAffinity.preferred"));
  EXPECT_TRUE(warnings[1].starts_with("spec.template.spec.topologySpreadConstraints: "));
}

TEST(Manifest, UpdatesRaiseTheGenerationIfTheSpecChanged) {
  auto job = admit(base());
  ASSERT_TRUE(job);
  auto same = update(**job, R"({"status": {"active": 7}})");
  ASSERT_TRUE(same) << refusal(same);
  EXPECT_EQ((*same)->json, (*job)->json);
  auto labelled = update(**job, R"({"metadata": {"labels": {"a": "b"}}})");
  ASSERT_TRUE(labelled);
  EXPECT_EQ((*labelled)->meta.generation, 1);
  EXPECT_EQ((*labelled)->meta.labels.at("a"), "b");
  auto changed = update(**job, R"({"spec": {"parallelism": 2}})");
  ASSERT_TRUE(changed) << refusal(changed);
  EXPECT_EQ((*changed)->meta.generation, 2);
  EXPECT_EQ(json::parse((*changed)->json)["metadata"]["generation"], 2);
  EXPECT_EQ((*changed)->meta.uid, kUid);
}

TEST(Manifest, UpdateOfTemplateFieldWithoutEffectIsRefused) {
  auto job = admit(base());
  ASSERT_TRUE(job);
  auto refused = update(**job, R"({"spec": {"template": {"spec": {"dnsPolicy": "None"}}}})");
  EXPECT_EQ(refusal(refused),
            "Job.batch \"v\" is invalid: spec.template: Invalid value: field is immutable");
  EXPECT_TRUE(update(**job, R"({"spec": {"template": {"spec": {"volumes": []}}}})"));
  // The same applies to a job loaded from its stored text.
  EXPECT_TRUE(update(*load_job((*job)->json), R"({"spec": {"parallelism": 2}})"));
}

TEST(Manifest, UpdateWithAnotherUidConflicts) {
  auto job = admit(base());
  ASSERT_TRUE(job);
  auto refused = update(**job, R"({"metadata": {"uid": "other"}})");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::conflict);
}

TEST(TimeText, PrintsWholeSecondsInUtcAndParsesRfc3339) {
  EXPECT_EQ(time_text(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(time_text(1'772'366'400'999), "2026-03-01T12:00:00Z");
  EXPECT_EQ(time_text(951'782'400'000), "2000-02-29T00:00:00Z");
  EXPECT_EQ(parse_time("2026-03-01T12:00:00Z"), 1'772'366'400'000);
  EXPECT_EQ(parse_time("2026-03-01T12:00:00.25Z"), 1'772'366'400'250);
  EXPECT_EQ(parse_time("2026-03-01T14:00:00+02:00"), 1'772'366'400'000);
  for (const char* bad : {"", "2026-03-01", "2026-02-30T00:00:00Z", "2026-03-01T25:00:00Z",
                          "2026-03-01T12:00:00", "2026-03-01T12:00:00Zx"})
    EXPECT_FALSE(parse_time(bad)) << bad;
}

TEST(P19EmptyTexts, EmptyEnumIsUnsupportedValue) {
  struct {
    json spec;
    const char* text;
  } rows[] = {
      {{{"podReplacementPolicy", ""}},
       "spec.podReplacementPolicy: Unsupported value: \"\": supported values: \"Failed\", "
       "\"TerminatingOrFailed\""},
      {{{"completionMode", ""}},
       "spec.completionMode: Unsupported value: \"\": supported values: \"Indexed\", "
       "\"NonIndexed\""},
  };
  for (const auto& [spec, text] : rows) {
    json document = {{"metadata", {{"name", "j"}}}, {"spec", spec}};
    document["spec"]["template"]["spec"] = {{"restartPolicy", "Never"},
                                            {"containers", {{{"name", "main"}}}}};
    auto parsed = parse_job(document.dump(), FieldValidation::strict);
    ASSERT_TRUE(parsed.ok()) << parsed.error().message;
    auto admitted = admit_job(std::move(*parsed), {"default", "u", 0, "abcde"});
    ASSERT_FALSE(admitted.ok()) << text;
    ASSERT_EQ(admitted.error().violations.size(), 1u);
    EXPECT_EQ(violation_text(admitted.error().violations[0]), text);
    for (auto& [name, value] : document["spec"].items())
      if (value == "") value = nullptr;
    auto absent = parse_job(document.dump(), FieldValidation::strict);
    ASSERT_TRUE(absent.ok());
    EXPECT_TRUE(admit_job(std::move(*absent), {"default", "u", 0, "abcde"}).ok()) << "left out";
  }
}

}  // namespace
}  // namespace muster::api
