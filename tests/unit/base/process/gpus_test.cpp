#include "base/process/gpus.hpp"

#include "tests/unit/agent/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace muster {
namespace {

using DeviceMap = std::map<std::string, std::vector<uint32_t>>;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class GpusTest : public testing::Test {
 protected:
  void file(const std::string& path, const std::string& text = "") {
    const std::filesystem::path at = temp_ / "root" + path;
    std::filesystem::create_directories(at.parent_path());
    std::ofstream(at) << text;
  }
  Gpus found() {
    return find_gpus(temp_ / "root", [this](const char* name) -> const char* {
      const auto it = variables.find(name);
      return it == variables.end() ? nullptr : it->second.c_str();
    });
  }
  std::map<std::string, std::string> variables;

 private:
  agent::TempDir temp_;
};

TEST_F(GpusTest, AMachineWithoutGpusHasNone) {
  EXPECT_THAT(found().numbers, IsEmpty());
  variables["CUDA_VISIBLE_DEVICES"] = "0,1";
  EXPECT_THAT(found().numbers, IsEmpty()) << "whatever the variable says";
}

TEST_F(GpusTest, NvidiasAreThoseOfTheDriver) {
  for (const char* name : {"nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "nvidia"})
    file(std::string("/dev/") + name);
  EXPECT_EQ(found().numbers, (DeviceMap{{"nvidia.com/gpu", {0, 1}}})) << "by their files";
  for (const char* bus : {"0000:17:00.0", "0000:65:00.0", "0000:ca:00.0"})
    file(std::string("/proc/driver/nvidia/gpus/") + bus + "/information");
  EXPECT_EQ(found().numbers, (DeviceMap{{"nvidia.com/gpu", {0, 1, 2}}})) << "by the driver";
}

TEST_F(GpusTest, AmdsAreRenderNodesBesideKfd) {
  file("/dev/dri/renderD128");
  file("/dev/dri/renderD129");
  file("/dev/dri/card0");
  file("/sys/class/drm/renderD128/device/vendor", "0x1002\n");
  file("/sys/class/drm/renderD129/device/vendor", "0x8086\n");
  EXPECT_THAT(found().numbers, IsEmpty()) << "without ROCm's driver";
  file("/dev/kfd");
  EXPECT_EQ(found().numbers, (DeviceMap{{"amd.com/gpu", {0}}}));
  variables["ROCR_VISIBLE_DEVICES"] = "-1";
  EXPECT_THAT(found().numbers, IsEmpty());
}

TEST_F(GpusTest, AnAllocationHasSomeOfThem) {
  for (const char* name : {"nvidia0", "nvidia1", "nvidia2", "nvidia3"})
    file(std::string("/dev/") + name);
  for (const auto& [text, numbers] :
       std::map<std::string, std::vector<uint32_t>>{{"2,3", {2, 3}},
                                                    {"3,2,3", {2, 3}},
                                                    {"1", {1}},
                                                    {"0,-1,2", {0}},
                                                    {"1,NoDevFiles", {1}}}) {
    variables["CUDA_VISIBLE_DEVICES"] = text;
    EXPECT_EQ(found().numbers, (DeviceMap{{"nvidia.com/gpu", numbers}})) << text;
    EXPECT_THAT(found().troubles, IsEmpty()) << text;
  }
  for (const char* none : {"", "-1", "NoDevFiles"}) {
    variables["CUDA_VISIBLE_DEVICES"] = none;
    EXPECT_THAT(found().numbers, IsEmpty()) << none;
  }
  for (const char* other : {"GPU-8932f937", "0,", "0 1", "1x", "99999999999"}) {
    variables["CUDA_VISIBLE_DEVICES"] = other;
    if (std::string(other) == "0,") {
      EXPECT_EQ(found().numbers, (DeviceMap{{"nvidia.com/gpu", {0}}}));
      continue;
    }
    EXPECT_THAT(found().numbers, IsEmpty()) << other;
    EXPECT_THAT(found().troubles, ElementsAre(HasSubstr("not a list of numbers"))) << other;
  }
}

TEST_F(GpusTest, AnAllocationThatDoesNotSayHasNone) {
  file("/dev/nvidia0");
  for (const char* job : {"SLURM_JOB_ID", "FLUX_JOB_ID", "PBS_JOBID"}) {
    variables = {{job, "17"}};
    EXPECT_THAT(found().numbers, IsEmpty()) << job;
    variables["CUDA_VISIBLE_DEVICES"] = "0";
    EXPECT_EQ(found().numbers, (DeviceMap{{"nvidia.com/gpu", {0}}})) << job;
  }
}

}  // namespace
}  // namespace muster
