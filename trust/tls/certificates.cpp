#include "trust/tls/certificates.hpp"

#include "base/check.hpp"
#include "base/hex.hpp"

#include <arpa/inet.h>
#include <ctime>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <utility>

namespace muster::tls {
namespace {

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Bio = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Cert = std::unique_ptr<X509, Freed<X509_free>>;
using Request = std::unique_ptr<X509_REQ, Freed<X509_REQ_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION_free>>;
using Serial = std::unique_ptr<BIGNUM, Freed<BN_free>>;

// A failed call leaves errors in the thread's queue, which KJ would attribute to a connection.
struct NoErrorsLeft {
  ~NoErrorsLeft() { ERR_clear_error(); }
};

constexpr Millis kAuthorityLifeMs = Millis{20} * 365 * 86'400'000;
constexpr size_t kNameMax = 300;

Bio reading(std::string_view text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string written(BIO* bio) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio, &bytes);
  return {bytes, static_cast<size_t>(size)};
}

template <class Write>
std::string pem(Write&& write) {
  const Bio bio(BIO_new(BIO_s_mem()));
  MUSTER_CHECK(bio && write(bio.get()) == 1);
  return written(bio.get());
}

std::string key_pem(EVP_PKEY* key) {
  return pem([key](BIO* bio) {
    return PEM_write_bio_PKCS8PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
}

std::string cert_pem(X509* cert) {
  return pem([cert](BIO* bio) { return PEM_write_bio_X509(bio, cert); });
}

int no_password(char*, int, int, void*) {
  return -1;
}

Key read_key(const std::string& text) {
  Key key(PEM_read_bio_PrivateKey(reading(text).get(), nullptr, no_password, nullptr));
  return key;
}

Cert read_cert(const std::string& text) {
  Cert cert(PEM_read_bio_X509(reading(text).get(), nullptr, no_password, nullptr));
  return cert;
}

Key new_key() {
  Key key(EVP_EC_gen("P-256"));
  MUSTER_CHECK(key != nullptr);
  return key;
}

// On P-256, so that a request cannot make us sign something weaker.
bool acceptable(EVP_PKEY* key) {
  char group[64] = "";
  size_t size = 0;
  return key != nullptr && EVP_PKEY_is_a(key, "EC") == 1 &&
         EVP_PKEY_get_group_name(key, group, sizeof group, &size) == 1 &&
         std::string_view(group) == SN_X9_62_prime256v1;
}

void set_times(X509* cert, Millis now_ms, Millis life_ms) {
  const auto now = static_cast<time_t>(now_ms / 1000);
  MUSTER_CHECK(ASN1_TIME_set(X509_getm_notBefore(cert), now - kClockSkewMs / 1000) != nullptr);
  MUSTER_CHECK(ASN1_TIME_set(X509_getm_notAfter(cert), now + life_ms / 1000) != nullptr);
}

void set_serial(X509* cert) {
  const Serial number(BN_new());
  MUSTER_CHECK(number && BN_rand(number.get(), 127, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1);
  MUSTER_CHECK(BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(cert)) != nullptr);
}

// Bypasses the library's check of X.520's 64-byte limit, which no reader of these certificates
// enforces; a node's name may have 253.
void set_name(X509* cert, const std::string& text) {
  MUSTER_CHECK(text.size() <= kNameMax);
  X509_NAME* name = X509_get_subject_name(cert);
  X509_NAME_ENTRY* entry = X509_NAME_ENTRY_new();
  MUSTER_CHECK(X509_NAME_ENTRY_set_object(entry, OBJ_nid2obj(NID_commonName)) == 1 &&
               X509_NAME_ENTRY_set_data(entry, V_ASN1_UTF8STRING,
                                        reinterpret_cast<const unsigned char*>(text.data()),
                                        static_cast<int>(text.size())) == 1 &&
               X509_NAME_add_entry(name, entry, -1, 0) == 1);
  X509_NAME_ENTRY_free(entry);
}

void extend(X509* cert, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, cert, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  MUSTER_CHECK(extension && X509_add_ext(cert, extension.get(), -1) == 1);
}

bool is_ip(const std::string& text) {
  unsigned char bytes[16];
  return inet_pton(AF_INET, text.c_str(), bytes) == 1 ||
         inet_pton(AF_INET6, text.c_str(), bytes) == 1;
}

std::string names_text(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names)
    text += (text.empty() ? "" : ",") + std::string(is_ip(name) ? "IP:" : "DNS:") + name;
  return text;
}

Cert signed_cert(EVP_PKEY* subject, const Issue& issue, X509* issuer, EVP_PKEY* issuer_key) {
  Cert cert(X509_new());
  MUSTER_CHECK(cert && X509_set_version(cert.get(), X509_VERSION_3) == 1);
  set_serial(cert.get());
  set_times(cert.get(), issue.now_ms, issue.life_ms);
  set_name(cert.get(), issue.common_name);
  MUSTER_CHECK(X509_set_issuer_name(cert.get(), X509_get_subject_name(issuer)) == 1 &&
               X509_set_pubkey(cert.get(), subject) == 1);
  extend(cert.get(), issuer, NID_basic_constraints, "critical,CA:FALSE");
  extend(cert.get(), issuer, NID_key_usage, "critical,digitalSignature");
  extend(cert.get(), issuer, NID_ext_key_usage, issue.server ? "serverAuth" : "clientAuth");
  extend(cert.get(), issuer, NID_authority_key_identifier, "keyid");
  if (!issue.names.empty())
    extend(cert.get(), issuer, NID_subject_alt_name, names_text(issue.names));
  MUSTER_CHECK(X509_sign(cert.get(), issuer_key, EVP_sha256()) > 0);
  return cert;
}

Request read_request(std::string_view der) {
  const auto* at = reinterpret_cast<const unsigned char*>(der.data());
  const auto* end = at + der.size();
  Request request(d2i_X509_REQ(nullptr, &at, static_cast<long>(der.size())));
  if (at != end) return nullptr;
  return request;
}

Millis time_of(const ASN1_TIME* time) {
  tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return 0;
  return Millis{timegm(&parts)} * 1000;
}

}  // namespace

struct Authority::Parsed {
  std::shared_ptr<EVP_PKEY> key;
  std::shared_ptr<X509> certificate;
};

Authority::Authority(KeyPair pems) : pems_(std::move(pems)) {
  const NoErrorsLeft clear;
  parsed_ =
      std::make_shared<const Parsed>(Parsed{read_key(pems_.key), read_cert(pems_.certificate)});
}

Authority Authority::make(const std::string& common_name, Millis now_ms) {
  const Key key = new_key();
  const Cert cert(X509_new());
  MUSTER_CHECK(cert && X509_set_version(cert.get(), X509_VERSION_3) == 1);
  set_serial(cert.get());
  set_times(cert.get(), now_ms, kAuthorityLifeMs);
  set_name(cert.get(), common_name);
  MUSTER_CHECK(X509_set_issuer_name(cert.get(), X509_get_subject_name(cert.get())) == 1 &&
               X509_set_pubkey(cert.get(), key.get()) == 1);
  extend(cert.get(), cert.get(), NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  extend(cert.get(), cert.get(), NID_key_usage, "critical,keyCertSign,cRLSign");
  extend(cert.get(), cert.get(), NID_subject_key_identifier, "hash");
  MUSTER_CHECK(X509_sign(cert.get(), key.get(), EVP_sha256()) > 0);
  return Authority({key_pem(key.get()), cert_pem(cert.get())});
}

Result<Authority> Authority::load(const KeyPair& pems) {
  const NoErrorsLeft clear;
  Authority authority(pems);
  const Parsed& parsed = *authority.parsed_;
  if (!parsed.certificate) return invalid("the certificate is not in PEM format");
  if (!parsed.key) return invalid("the private key is not in PEM format, or has a password");
  if (X509_check_private_key(parsed.certificate.get(), parsed.key.get()) != 1)
    return invalid("the private key does not match the certificate");
  if (X509_check_ca(parsed.certificate.get()) != 1)
    return invalid("the certificate is not for an authority (basicConstraints CA:TRUE)");
  if (EVP_PKEY_is_a(parsed.key.get(), "EC") != 1 && EVP_PKEY_is_a(parsed.key.get(), "RSA") != 1)
    return invalid("its key must be an EC or an RSA key");
  // Members trust nothing else, so they could not verify what an intermediate authority signed.
  if (X509_check_issued(parsed.certificate.get(), parsed.certificate.get()) != X509_V_OK)
    return invalid("the certificate is for an intermediate authority; it must be self-signed");
  authority.pems_ = {key_pem(parsed.key.get()), cert_pem(parsed.certificate.get())};
  return authority;
}

KeyPair Authority::issue(const Issue& issue) const {
  const NoErrorsLeft clear;
  const Key key = new_key();
  const Cert cert = signed_cert(key.get(), issue, parsed_->certificate.get(), parsed_->key.get());
  return {key_pem(key.get()), cert_pem(cert.get())};
}

Result<std::string> Authority::sign(std::string_view der, const Issue& issue) const {
  const NoErrorsLeft clear;
  const Request request = read_request(der);
  if (!request) return invalid("it is not a certificate signing request");
  EVP_PKEY* key = X509_REQ_get0_pubkey(request.get());
  if (!acceptable(key)) return invalid("its key is not an EC key on P-256");
  if (X509_REQ_verify(request.get(), key) != 1) {
    return invalid("its signature does not match its key");
  }
  return cert_pem(signed_cert(key, issue, parsed_->certificate.get(), parsed_->key.get()).get());
}

std::string make_key() {
  return key_pem(new_key().get());
}

Result<std::string> make_request(const std::string& key_text) {
  const NoErrorsLeft clear;
  const Key key = read_key(key_text);
  if (!key) return invalid("the private key is not in PEM format");
  const Request request(X509_REQ_new());
  MUSTER_CHECK(request && X509_REQ_set_pubkey(request.get(), key.get()) == 1 &&
               X509_REQ_sign(request.get(), key.get(), EVP_sha256()) > 0);
  unsigned char* bytes = nullptr;
  const int size = i2d_X509_REQ(request.get(), &bytes);
  MUSTER_CHECK(size > 0);
  std::string der(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
  OPENSSL_free(bytes);
  return der;
}

Result<std::string> request_key_hash(std::string_view der) {
  const NoErrorsLeft clear;
  const Request request = read_request(der);
  EVP_PKEY* key = request ? X509_REQ_get0_pubkey(request.get()) : nullptr;
  if (!key) return invalid("it is not a certificate signing request");
  unsigned char* bytes = nullptr;
  const int size = i2d_PUBKEY(key, &bytes);
  if (size <= 0) return invalid("it has no public key");
  const std::string hash =
      sha256_hex({reinterpret_cast<const char*>(bytes), static_cast<size_t>(size)});
  OPENSSL_free(bytes);
  return hash;
}

Result<Facts> read_certificate(const std::string& text) {
  const NoErrorsLeft clear;
  const Cert cert = read_cert(text);
  if (!cert) return invalid("it is not a certificate in PEM format");
  return facts_of(*cert);
}

Facts facts_of(X509& certificate) {
  Facts facts;
  X509_NAME* name = X509_get_subject_name(&certificate);
  const int at = X509_NAME_get_index_by_NID(name, NID_commonName, -1);
  if (at >= 0) {
    unsigned char* bytes = nullptr;
    const int size =
        ASN1_STRING_to_UTF8(&bytes, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at)));
    if (size > 0)
      facts.common_name.assign(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
    OPENSSL_free(bytes);
  }
  facts.from_ms = time_of(X509_get0_notBefore(&certificate));
  facts.until_ms = time_of(X509_get0_notAfter(&certificate));
  return facts;
}

bool fits(const KeyPair& pair) {
  const NoErrorsLeft clear;
  const Cert cert = read_cert(pair.certificate);
  const Key key = read_key(pair.key);
  const bool fits = cert && key && X509_check_private_key(cert.get(), key.get()) == 1;
  return fits;
}

std::string sha256_hex(std::string_view bytes) {
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  MUSTER_CHECK(EVP_Digest(bytes.data(), bytes.size(), hash, &size, EVP_sha256(), nullptr) == 1);
  return to_hex({reinterpret_cast<const char*>(hash), size});
}

std::string base64(std::string_view bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                   reinterpret_cast<const unsigned char*>(bytes.data()),
                                   static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(size));
  return text;
}

}  // namespace muster::tls
