//! What is changed in the sources of the plug-ins.
//!
//! Diffie-Hellman's public keys of `DH+MODP-2048-256` are written in two ways: Cyclone DDS writes an integer of ASN.1, and Fast DDS its
//! bytes alone, the first byte first, as DDS Security has it since 1.2. Fast DDS asks by that algorithm, so a handshake that it begins
//! would fail. Here both are read, and whoever is answered is answered in his own way.
//!
//! The names of algorithms go without a NUL behind them, with which Fast DDS does not know them. Cyclone DDS takes both.
//!
//! A reader of a topic of which only the samples are protected has no key of its own, and Cyclone DDS says so by no token. A writer of Fast DDS
//! waits for one, and sends nothing until then. Here it gets one without a key, which both know.

use crate::sources::Change;

/// In the order in which they are made.
pub(crate) const CHANGES: &[Change] = &[
    (
        "builtin_plugins/authentication/src/auth_utils.h",
        r#"    AUTH_ALGO_KIND_RSA_2048,
"#,
        r#"    AUTH_ALGO_KIND_RSA_2048,
    /* Of a key agreement alone: as the one above, with public keys that are bytes and no ASN.1. */
    TSUJI_ALGO_KIND_MODP_BYTES,
"#,
    ),
    (
        "builtin_plugins/authentication/src/auth_utils.h",
        r#"} AuthenticationAlgoKind_t;
"#,
        r#"} AuthenticationAlgoKind_t;

/* Whether a public key is an integer of ASN.1, and nothing behind it. Bytes of 2048 bits that look so are met once in 10^7 handshakes, which are begun anew. */
bool tsuji_is_asn1_integer (const unsigned char *str, uint32_t size);
"#,
    ),
    (
        UTILS,
        r#"  case AUTH_ALGO_KIND_RSA_2048:
    return dh_public_key_to_oct_modp(pkey, buffer, length, ex);
"#,
        r#"  case AUTH_ALGO_KIND_RSA_2048:
    return dh_public_key_to_oct_modp(pkey, buffer, length, ex);
  case TSUJI_ALGO_KIND_MODP_BYTES:
    return tsuji_public_key_to_bytes(pkey, buffer, length, ex);
"#,
    ),
    (
        UTILS,
        r#"  case AUTH_ALGO_KIND_RSA_2048:
    return dh_oct_to_public_key_modp(data, str, size, ex);
"#,
        r#"  case AUTH_ALGO_KIND_RSA_2048:
    return dh_oct_to_public_key_modp(data, str, size, ex);
  case TSUJI_ALGO_KIND_MODP_BYTES:
    return tsuji_bytes_to_public_key(data, str, size, ex);
"#,
    ),
    (
        UTILS,
        r#"DDS_Security_ValidationResult_t dh_public_key_to_oct(EVP_PKEY *pkey, AuthenticationAlgoKind_t algo"#,
        r#"bool tsuji_is_asn1_integer (const unsigned char *str, uint32_t size)
{
  const unsigned char *at = str;
  ASN1_INTEGER *read = d2i_ASN1_INTEGER (NULL, &at, (long) size);
  const bool is_whole = read != NULL && at == str + size;
  ASN1_INTEGER_free (read);
  if (!is_whole)
    ERR_clear_error ();
  return is_whole;
}

static DDS_Security_ValidationResult_t tsuji_failed (const char *what, DDS_Security_SecurityException *ex)
{
  DDS_Security_Exception_set (ex, DDS_AUTH_PLUGIN_CONTEXT, DDS_SECURITY_ERR_UNDEFINED_CODE, DDS_SECURITY_VALIDATION_FAILED, what);
  return DDS_SECURITY_VALIDATION_FAILED;
}

static DDS_Security_ValidationResult_t tsuji_public_key_to_bytes (EVP_PKEY *pkey, unsigned char **buffer, uint32_t *length, DDS_Security_SecurityException *ex)
{
  unsigned char *asn1 = NULL;
  uint32_t asn1_size = 0;
  if (dh_public_key_to_oct_modp (pkey, &asn1, &asn1_size, ex) != DDS_SECURITY_VALIDATION_OK)
    return DDS_SECURITY_VALIDATION_FAILED;
  const unsigned char *at = asn1;
  ASN1_INTEGER *integer = d2i_ASN1_INTEGER (NULL, &at, (long) asn1_size);
  BIGNUM *number = integer == NULL ? NULL : ASN1_INTEGER_to_BN (integer, NULL);
  if (number != NULL)
  {
    *length = (uint32_t) BN_num_bytes (number);
    *buffer = ddsrt_malloc (*length);
    (void) BN_bn2bin (number, *buffer);
  }
  const bool is_done = number != NULL;
  BN_free (number);
  ASN1_INTEGER_free (integer);
  ddsrt_free (asn1);
  return is_done ? DDS_SECURITY_VALIDATION_OK : tsuji_failed ("Failed to write a public key as bytes", ex);
}

static DDS_Security_ValidationResult_t tsuji_bytes_to_public_key (EVP_PKEY **pkey, const unsigned char *str, uint32_t size, DDS_Security_SecurityException *ex)
{
  DDS_Security_ValidationResult_t result = DDS_SECURITY_VALIDATION_FAILED;
  /* 2048 bits. */
  BIGNUM *number = size <= 256 ? BN_bin2bn (str, (int) size, NULL) : NULL;
  ASN1_INTEGER *integer = number == NULL ? NULL : BN_to_ASN1_INTEGER (number, NULL);
  unsigned char *asn1 = NULL;
  const int asn1_size = integer == NULL ? -1 : i2d_ASN1_INTEGER (integer, &asn1);
  if (asn1_size < 0)
    (void) tsuji_failed ("Failed to read a public key from bytes", ex);
  else
    result = dh_oct_to_public_key_modp (pkey, asn1, (uint32_t) asn1_size, ex);
  OPENSSL_free (asn1);
  ASN1_INTEGER_free (integer);
  BN_free (number);
  return result;
}

DDS_Security_ValidationResult_t dh_public_key_to_oct(EVP_PKEY *pkey, AuthenticationAlgoKind_t algo"#,
    ),
    (
        UTILS,
        r#"  case AUTH_ALGO_KIND_RSA_2048:
    if (get_rsa_dh_parameters"#,
        r#"  case AUTH_ALGO_KIND_RSA_2048:
  case TSUJI_ALGO_KIND_MODP_BYTES:
    if (get_rsa_dh_parameters"#,
    ),
    (
        AUTHENTICATION,
        r#"    return AUTH_KAGREE_ALGO_RSA_2048_SHA256_IDENT;
  case"#,
        r#"  case TSUJI_ALGO_KIND_MODP_BYTES:
    return AUTH_KAGREE_ALGO_RSA_2048_SHA256_IDENT;
  case"#,
    ),
    (
        AUTHENTICATION,
        r#"    if (dh_oct_to_public_key (&pdhkey_req, kagreeAlgoKind,"#,
        r#"    if (kagreeAlgoKind == AUTH_ALGO_KIND_RSA_2048 && !tsuji_is_asn1_integer (dh1->value._buffer, dh1->value._length))
      kagreeAlgoKind = TSUJI_ALGO_KIND_MODP_BYTES;
    if (dh_oct_to_public_key (&pdhkey_req, kagreeAlgoKind,"#,
    ),
    (
        AUTHENTICATION,
        r#"  DDS_Security_BinaryProperty_set_by_string(&tokens[tokidx++], DDS_AUTHTOKEN_PROP_C_DSIGN_ALGO, get_dsign_algo(localIdent->dsignAlgoKind));
  DDS_Security_BinaryProperty_set_by_string(&tokens[tokidx++], DDS_AUTHTOKEN_PROP_C_KAGREE_ALGO, get_kagree_algo(localIdent->kagreeAlgoKind));
"#,
        r#"  tsuji_set_name(&tokens[tokidx++], DDS_AUTHTOKEN_PROP_C_DSIGN_ALGO, get_dsign_algo(localIdent->dsignAlgoKind));
  tsuji_set_name(&tokens[tokidx++], DDS_AUTHTOKEN_PROP_C_KAGREE_ALGO, get_kagree_algo(localIdent->kagreeAlgoKind));
"#,
    ),
    (
        AUTHENTICATION,
        r#"  DDS_Security_BinaryProperty_set_by_string(&tokens[tokidx++], DDS_AUTHTOKEN_PROP_C_DSIGN_ALGO, get_dsign_algo(localIdent->dsignAlgoKind));
  DDS_Security_BinaryProperty_set_by_string(&tokens[tokidx++], DDS_AUTHTOKEN_PROP_C_KAGREE_ALGO, get_kagree_algo(remoteIdent->kagreeAlgoKind));
"#,
        r#"  tsuji_set_name(&tokens[tokidx++], DDS_AUTHTOKEN_PROP_C_DSIGN_ALGO, get_dsign_algo(localIdent->dsignAlgoKind));
  tsuji_set_name(&tokens[tokidx++], DDS_AUTHTOKEN_PROP_C_KAGREE_ALGO, get_kagree_algo(remoteIdent->kagreeAlgoKind));
"#,
    ),
    (
        AUTHENTICATION,
        r#"static bool str_octseq_equal (const char *str"#,
        r#"static void tsuji_set_name (DDS_Security_BinaryProperty_t *property, const char *name, const char *value)
{
  DDS_Security_BinaryProperty_set_by_value (property, name, (const unsigned char *) value, (uint32_t) strlen (value));
}

static bool str_octseq_equal (const char *str"#,
    ),
    (
        "builtin_plugins/cryptographic/src/crypto_key_factory.c",
        r#"    *key_mat = NULL; /* there is no key material to return, because of no encryption for submessages in AccessControl */
  result = true;

err_inv_remote:
  CRYPTO_OBJECT_RELEASE(remote_writer_crypto);"#,
        r#"  {
    *key_mat = crypto_master_key_material_new(CRYPTO_TRANSFORMATION_KIND_NONE);
    (*key_mat)->sender_key_id = ddsrt_atomic_inc32_ov(&impl->next_key_id);
  }
  result = true;

err_inv_remote:
  CRYPTO_OBJECT_RELEASE(remote_writer_crypto);"#,
    ),
];

const UTILS: &str = "builtin_plugins/authentication/src/auth_utils.c";
const AUTHENTICATION: &str = "builtin_plugins/authentication/src/authentication.c";
