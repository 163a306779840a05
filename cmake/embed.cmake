# Turns a file into a C++ source that holds it: cmake -DIN=… -DOUT=… -P embed.cmake
# The bytes as they are, as kPage, and the SHA-256 of them as kPageHash (api/page.hpp).
file(READ "${IN}" bytes HEX)
file(SHA256 "${IN}" hash)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n" bytes "${bytes}")
file(WRITE "${OUT}" "// Made from ${IN} by cmake/embed.cmake.
#include \"api/page.hpp\"

namespace muster::api {
namespace {
constexpr unsigned char kBytes[] = {
${bytes}};
}  // namespace
const std::string_view kPage(reinterpret_cast<const char*>(kBytes), sizeof kBytes);
const std::string_view kPageHash(\"${hash}\");
}  // namespace muster::api
")
