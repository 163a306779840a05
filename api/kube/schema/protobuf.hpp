// Protobuf: converts protobuf bodies, which newer clients send for some requests (`kubectl create
// job NAME`), to JSON.
//
// Kubernetes' frame is "k8s\0", then a message with the version, the kind and the object. Field
// numbers are in api/openapi/. A field that muster knows by name only (ports, probes…) cannot be
// read this way; the error names it. Unknown field numbers are skipped, as usual in protobuf.
#pragma once

#include "base/result.hpp"

#include <string>
#include <string_view>

namespace muster::api {

constexpr std::string_view kProtobufType = "application/vnd.kubernetes.protobuf";

// The JSON text of the object in the frame.
Result<std::string> protobuf_to_json(std::string_view framed);

}  // namespace muster::api
