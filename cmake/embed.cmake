# Embeds a file in a C++ source: cmake -DIN=… -DOUT=… -P embed.cmake
# Defines kPage (the bytes), kPageHash (their SHA-256) and kPageScriptHash, the hash of the text between
# <script> and </script>, in the form that a Content-Security-Policy uses (api/routes/page.hpp).
file(READ "${IN}" bytes HEX)
file(SHA256 "${IN}" hash)

file(READ "${IN}" text)
string(REGEX MATCHALL "<script" scripts "${text}")
list(LENGTH scripts count)
if(NOT count EQUAL 1)
  message(FATAL_ERROR "${IN}: has ${count} scripts; the policy names one")
endif()
string(FIND "${text}" "<script>" start)
string(FIND "${text}" "</script>" end)
if(start EQUAL -1 OR end LESS start)
  message(FATAL_ERROR "${IN}: has no <script> ... </script>")
endif()
math(EXPR start "${start} + 8")
math(EXPR length "${end} - ${start}")
string(SUBSTRING "${text}" ${start} ${length} script)
string(SHA256 script_hex "${script}")
# To base64: 6 hexadecimal digits make 4 characters; the last two of the 32 bytes are padded with a zero byte.
set(alphabet "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
set(script_hash "")
foreach(at RANGE 0 60 6)
  string(SUBSTRING "${script_hex}00" ${at} 6 group)
  math(EXPR number "0x${group}")
  foreach(shift 18 12 6 0)
    math(EXPR digit "(${number} >> ${shift}) & 63")
    string(SUBSTRING "${alphabet}" ${digit} 1 character)
    string(APPEND script_hash "${character}")
  endforeach()
endforeach()
string(SUBSTRING "${script_hash}" 0 43 script_hash)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n" bytes "${bytes}")
file(WRITE "${OUT}" "// Made from ${IN} by cmake/embed.cmake.
#include \"api/routes/page.hpp\"

namespace muster::api {
namespace {
constexpr unsigned char kBytes[] = {
${bytes}};
}  // namespace
const std::string_view kPage(reinterpret_cast<const char*>(kBytes), sizeof kBytes);
const std::string_view kPageHash(\"${hash}\");
const std::string_view kPageScriptHash(\"sha256-${script_hash}=\");
}  // namespace muster::api
")
