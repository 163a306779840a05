// Completion: scripts for shells, made of the grammar. Pure.
//
// Verbs, flags and their words stand in the script; names of jobs, pods and nodes are asked of the
// coordinator when Tab is pressed, within a second and in silence.
#pragma once

#include "cli/line/grammar.hpp"

#include <string>
#include <vector>

namespace muster::cli {

// What may stand at a place, told from what its type says to people: "job/J..." names jobs, "F" is
// a file.
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
