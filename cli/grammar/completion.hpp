// Completion: shell scripts, generated from the grammar. Pure.
//
// The script contains verbs, flags and their values. Names of jobs, pods and nodes come from the
// coordinator when Tab is pressed, within a second and without error messages.
#pragma once

#include "cli/grammar/grammar.hpp"

#include <string>
#include <vector>

namespace muster::cli {

// What can be completed at a position, derived from the type shown in the help: "job/J..." means
// names of jobs, "F" a file.
struct Completes {
  std::vector<std::string> words;
  bool kinds = false, jobs = false, pods = false, nodes = false;
  bool files = false, folders = false;
};
Completes completes(const std::string& type, const std::vector<std::string>& words);

std::string bash_completion(const std::vector<VerbWords>& verbs);
std::string zsh_completion(const std::vector<VerbWords>& verbs);
std::string fish_completion(const std::vector<VerbWords>& verbs);

}  // namespace muster::cli
