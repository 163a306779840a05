// ApiTypes: the types of the API, and what muster does with each of their fields.
//
// Kubernetes' fields are defined in one place, api/openapi/ (batch.yaml explains the notation).
// make_tables.py generates constant tables from it at build time, so nothing is parsed at run time
// and a wrong line fails the build. The tables determine what conform() accepts, who owns what
// (FieldType), how patches merge lists, how protobuf bodies are read, what refused_fields()
// refuses, and what the OpenAPI documents contain.
#pragma once

#include <span>
#include <string_view>

namespace muster::api {

struct ApiType;

struct ApiField {
  std::string_view name;
  std::string_view type;        // of the value or each item: string, int32, …, any, an ApiType
  const ApiType* of = nullptr;  // that ApiType; nullptr: a plain value
  bool list = false, map = false;
  unsigned number = 0;  // in Kubernetes' protobuf; 0: it is not in protobuf
  bool required = false;
  bool set = false;     // a list of distinct values
  bool merged = false;  // a strategic patch merges the list instead of replacing it
  bool atomic = false;  // an object or map that has one owner and changes only as a whole
  bool unread = false;  // stored but not checked; the type `of` only documents it
  bool plain = false;   // 0 or false means the same as no value
  std::span<const std::string_view> keys{};  // the key members of a list's items, if it has any
  // In the template of a job, no value means this: a text, a number or {}. Empty: none.
  std::string_view preset = {};
  // What muster does with it in a manifest; refused_fields.hpp has the refusals.
  enum class Use {
    acts,                // what `about` says
    kept,                // stored and returned, without any effect
    refused,             // unless it is empty
    refused_even_empty,  // whatever its value
    refused_unless,      // any value but one
    refused_in_part,     // by a rule that the tables cannot express
  };
  Use use = Use::acts;
  std::string_view refused_unless = {};  // with refused_unless: the one accepted value
  std::string_view hint = {};            // of a refused field: what to use instead, for the error
  std::string_view about = {};           // description for clients
};

struct ApiType {
  std::string_view name;
  std::string_view kind;           // the name without the suffix that tells namesakes apart
  std::string_view schema;         // io.k8s.api.batch.v1.Job
  std::string_view group_version;  // of a kind: "batch/v1"; empty: only part of other types
  std::string_view about;
  std::span<const ApiField> fields;

  const ApiField* field(std::string_view wanted) const;  // nullptr: no such field
};

// The types in all files, sorted by name.
std::span<const ApiType> api_types();

// The type of this name ("Job", "PodSpec"); nullptr: no such type.
const ApiType* api_type(std::string_view name);

// The type of this kind in this group and version; nullptr: no such type.
const ApiType* api_kind(std::string_view group_version, std::string_view kind);

// A list that strategic patches merge, by the name of its field. It must merge the same way in all
// types, or the build fails.
struct MergedList {
  std::string_view field;
  std::string_view key;  // of its items; empty: plain values
};
// Sorted by name.
std::span<const MergedList> merged_lists();

}  // namespace muster::api
