// The GPUs of this machine, found without their libraries.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace muster {

struct Gpus {
  // Ascending, by the name of the resource: nvidia.com/gpu, amd.com/gpu.
  std::map<std::string, std::vector<uint32_t>> numbers;
  std::vector<std::string> troubles;  // what could not be understood, for people
};

// NVIDIA's as their driver lists them (/proc/driver/nvidia/gpus, else /dev/nvidia0, …), AMD's as
// render nodes beside /dev/kfd, both numbered from 0, as CUDA and ROCm do. Where the variable by
// which a batch system limits those to some of them is set (CUDA_VISIBLE_DEVICES,
// ROCR_VISIBLE_DEVICES), these; in a job of Slurm, Flux or PBS without it, none. `root`: of the
// file system, without a slash at the end. `variable`: of the environment; null: not set.
Gpus find_gpus(const std::string& root, const std::function<const char*(const char*)>& variable);

}  // namespace muster
