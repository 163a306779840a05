// First line: what keeps a file from being started as a program, as its first bytes say
// (execve(2)): carriage returns, a missing interpreter, no `#!`.
#pragma once

#include <string>

namespace muster::cli {

// "its first line ends with a carriage return, …", with what to do about it. Empty: nothing that
// can be seen here, or the file cannot be read.
std::string start_trouble(const std::string& path);

}  // namespace muster::cli
