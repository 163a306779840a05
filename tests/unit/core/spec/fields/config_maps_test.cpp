// Which config maps a pod needs, and what is missing.
#include "core/spec/fields/config_maps.hpp"

#include <gtest/gtest.h>

namespace muster::core {
namespace {

TEST(ConfigMaps, NeedsListRequiredAndOptionalKeysOfPod) {
  PodTemplate pod;
  Container init, main;
  init.env = {{"A", "", "", {}, ConfigKeyRef{"a", "k", false}},
              {"B", "", "", {}, ConfigKeyRef{"a", "maybe", true}},
              {"C", "plain", ""}};
  main.env_from = {{"", "b", true}, {"", "c", false}, {"x", "c", true}};
  pod.init_containers = {init};
  pod.containers = {main};
  EXPECT_EQ(config_needs(pod), (ConfigNeeds{{"a", {true, {"k"}}}, {"b", {}}, {"c", {true, {}}}}));
  EXPECT_TRUE(config_needs(PodTemplate{}).empty());
}

TEST(ConfigMaps, MissingConfigNamesMapOrKey) {
  const ConfigNeeds needs{{"a", {true, {"k"}}}, {"b", {}}};
  struct {
    std::map<std::string, ConfigKeys> maps;
    const char* missing;
  } rows[] = {
      {{}, "configmap \"a\" not found"},
      {{{"b", {}}}, "configmap \"a\" not found"},
      {{{"a", {{"other"}, {}}}}, "couldn't find key k in ConfigMap blue/a"},
      {{{"a", {{}, {"k"}}}}, "couldn't find key k in ConfigMap blue/a"},
      {{{"a", {{"k"}, {}}}}, ""},
  };
  for (const auto& [maps, missing] : rows) {
    std::map<std::string, const ConfigKeys*> there;
    for (const auto& [name, keys] : maps) there[name] = &keys;
    EXPECT_EQ(missing_config(needs, there, "blue").value_or(""), missing);
  }
}

}  // namespace
}  // namespace muster::core
