#include "client/inputs/first_line.hpp"

#include "client/terminal/text.hpp"

#include <algorithm>
#include <fstream>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::cli {
namespace {

constexpr size_t kReadMax = 4096;  // bytes; the kernel reads 256
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

std::string start_trouble(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return "";
  std::ifstream in(path, std::ios::binary);
  std::string bytes(kReadMax, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (in.bad() || !in.is_open()) return "";
  bytes.resize(static_cast<size_t>(in.gcount()));
  if (bytes.empty()) return "it is empty";
  std::string_view line = bytes;
  const bool marked = line.starts_with(kByteOrderMark);
  if (marked) line.remove_prefix(kByteOrderMark.size());
  if (!line.starts_with("#!")) {
    // Of binary files only the kernel knows which ones it starts.
    if (bytes.find('\0') != std::string::npos) return "";
    return "it has no first line such as #!/bin/sh";
  }
  if (marked) return "a byte order mark stands before its #!: sed -i '1s/^\\xef\\xbb\\xbf//'";
  line = line.substr(2, line.find('\n') - 2);
  if (line.ends_with('\r'))
    return "its first line ends with a carriage return, as in files of Windows: remove it with "
           "sed -i 's/\\r$//'";
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  const std::string interpreter(line.substr(0, line.find_first_of(" \t")));
  if (access(interpreter.c_str(), F_OK) != 0)
    return "its first line names " + (interpreter.empty()
                                          ? "no interpreter"
                                          : one_line(interpreter) + ", which does not exist here");
  return "";
}

}  // namespace muster::cli
