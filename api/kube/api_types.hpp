// ApiTypes: the types of what is served, and what muster does with each of their fields.
//
// The one source of Kubernetes' fields is api/openapi/ (batch.yaml says how it is written). Its
// make_tables.py makes constant tables of it when muster is built, so nothing is parsed at run
// time, and a line that makes no sense fails the build. Every reader works by these tables:
// conform() what it accepts, FieldType who owns what, patches how lists merge, protobuf bodies,
// refused_fields(), and the OpenAPI documents.
#pragma once

#include <span>
#include <string_view>

namespace muster::api {

struct ApiType;

struct ApiField {
  std::string_view name;
  std::string_view type;  // of the value, or of each item: string, int32, …, any, an ApiType
  const ApiType* of = nullptr;  // that ApiType; nullptr: a plain value
  bool list = false, map = false;
  unsigned number = 0;  // in Kubernetes' protobuf; 0: can't be told apart there
  bool required = false;
  bool set = false;     // a list of unlike values
  bool merged = false;  // a strategic patch merges the list; else it replaces it
  bool atomic = false;  // an object or map that has one owner, who changes all of it
  bool unread = false;  // kept, not looked at: what is below `of` is told to clients, not checked
  std::span<const std::string_view> keys{};  // of a list whose items are told apart by them
  enum class Refused { no, unless_empty, if_there, unless_value };
  Refused refused = Refused::no;         // in a manifest (refused_fields.hpp)
  std::string_view refused_unless = {};  // with unless_value: the one that may be written
  std::string_view about = {};           // a sentence or more, for clients
};

struct ApiType {
  std::string_view name;
  std::string_view kind;           // the name without what tells two kinds of one name apart
  std::string_view schema;         // io.k8s.api.batch.v1.Job
  std::string_view group_version;  // of a kind: "batch/v1"; empty: a part of others
  std::string_view about;
  std::span<const ApiField> fields;

  const ApiField* field(std::string_view wanted) const;  // nullptr: there is none
};

// Of all files, in the order of their names.
std::span<const ApiType> api_types();

// The type of this name ("Job", "PodSpec"); nullptr: there is none.
const ApiType* api_type(std::string_view name);

// The type of this kind of this group and version; nullptr: there is none.
const ApiType* api_kind(std::string_view group_version, std::string_view kind);

// A list that strategic patches merge, by the name of its field: it merges alike in all types, or
// the build fails.
struct MergedList {
  std::string_view field;
  std::string_view key;  // of its items; empty: they are plain values
};
// In the order of their names.
std::span<const MergedList> merged_lists();

}  // namespace muster::api
