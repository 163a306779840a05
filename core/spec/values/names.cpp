#include "core/spec/values/names.hpp"

#include <algorithm>

namespace muster::core {
namespace {

constexpr std::string_view kLabel =
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
constexpr std::string_view kSubdomain =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
constexpr std::string_view kName =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
constexpr std::string_view kLabelValue =
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  "
    "or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
constexpr std::string_view kConfigKey =
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name', "
    " or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
constexpr std::string_view kEnvName =
    "a valid environment variable name must consist only of printable ASCII characters other than "
    "'='";

// Not from <cctype>, which depends on the locale.
bool digit(char c) {
  return c >= '0' && c <= '9';
}
bool lower(char c) {
  return c >= 'a' && c <= 'z';
}
bool upper(char c) {
  return c >= 'A' && c <= 'Z';
}
bool alphanumeric(char c) {
  return digit(c) || lower(c) || upper(c);
}
bool lower_alphanumeric(char c) {
  return digit(c) || lower(c);
}

// Not empty; the first and last characters satisfy `edge`, the others do too or are in `inside`.
bool made_of(std::string_view text, bool (*edge)(char), std::string_view inside) {
  return !text.empty() && edge(text.front()) && edge(text.back()) &&
         std::all_of(text.begin(), text.end(), [edge, inside](char c) {
           return edge(c) || inside.find(c) != std::string_view::npos;
         });
}

bool subdomain(std::string_view text) {
  for (;;) {
    size_t dot = text.find('.');
    if (!made_of(text.substr(0, dot), lower_alphanumeric, "-")) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

std::string no_more_than(size_t most) {
  return "must be no more than " + std::to_string(most) + " characters";
}

}  // namespace

Reasons dns_label_errors(std::string_view text) {
  Reasons errors;
  if (text.size() > 63) errors.push_back(no_more_than(63));
  if (!made_of(text, lower_alphanumeric, "-")) errors.emplace_back(kLabel);
  return errors;
}

Reasons dns_subdomain_errors(std::string_view text) {
  Reasons errors;
  if (text.size() > 253) errors.push_back(no_more_than(253));
  if (!subdomain(text)) errors.emplace_back(kSubdomain);
  return errors;
}

Reasons qualified_name_errors(std::string_view text) {
  Reasons errors;
  std::string_view name = text;
  if (size_t slash = text.find('/'); slash != std::string_view::npos) {
    std::string_view prefix = text.substr(0, slash);
    name = text.substr(slash + 1);
    if (name.find('/') != std::string_view::npos) {
      errors.push_back("a qualified name " + std::string(kName) +
                       " with an optional DNS subdomain prefix and '/' (e.g. "
                       "'example.com/MyName')");
      return errors;
    }
    if (prefix.empty()) errors.push_back("prefix part must be non-empty");
    if (!prefix.empty())
      for (const std::string& reason : dns_subdomain_errors(prefix))
        errors.push_back("prefix part " + reason);
  }
  if (name.empty()) {
    errors.push_back("name part must be non-empty");
  } else if (name.size() > 63) {
    errors.push_back("name part " + no_more_than(63));
  }
  if (!made_of(name, alphanumeric, "-_.")) errors.push_back("name part " + std::string(kName));
  return errors;
}

Reasons label_value_errors(std::string_view text) {
  Reasons errors;
  if (text.size() > 63) errors.push_back(no_more_than(63));
  if (!text.empty() && !made_of(text, alphanumeric, "-_.")) errors.emplace_back(kLabelValue);
  return errors;
}

Reasons config_key_errors(std::string_view text) {
  Reasons errors;
  if (text.size() > 253) errors.push_back(no_more_than(253));
  const bool fine = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return alphanumeric(c) || c == '-' || c == '_' || c == '.';
  });
  if (!fine) errors.emplace_back(kConfigKey);
  if (text == ".") errors.emplace_back("must not be '.'");
  if (text == "..") {
    errors.emplace_back("must not be '..'");
  } else if (text.starts_with("..")) {
    errors.emplace_back("must not start with '..'");
  }
  return errors;
}

Reasons env_name_errors(std::string_view text) {
  bool fine = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c >= 0x20 && c <= 0x7e && c != '=';
  });
  return fine ? Reasons{} : Reasons{std::string(kEnvName)};
}

Reasons domain_path_errors(std::string_view text) {
  size_t slash = text.find('/');
  if (slash == std::string_view::npos || slash == 0 || slash + 1 == text.size())
    return {"must be a domain-prefixed path (such as \"acme.io/foo\")"};
  Reasons errors = dns_subdomain_errors(text.substr(0, slash));
  std::string_view path = text.substr(slash + 1);
  constexpr std::string_view kPathChars = "/-._~%!$&'()*+,;=:";
  if (!std::all_of(path.begin(), path.end(), [kPathChars](char c) {
        return alphanumeric(c) || kPathChars.find(c) != std::string_view::npos;
      }))
    errors.push_back("Invalid path");
  return errors;
}

}  // namespace muster::core
