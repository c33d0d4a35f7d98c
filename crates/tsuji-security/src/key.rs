//! The secret key of an enclave.

use std::fmt;

use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};

/// A secret key, of a kind that DDS Security knows.
pub(crate) enum Key {
    P256(EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

impl Key {
    /// Reads a key in PKCS #8. `None` if it is of another kind.
    pub(crate) fn from_pkcs8(der: &[u8]) -> Option<Self> {
        let random = SystemRandom::new();
        let of_curve = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, der, &random);
        of_curve.map(Self::P256).or_else(|_| RsaKeyPair::from_pkcs8(der).map(Self::Rsa)).ok()
    }

    /// Its public half, as certificates have it.
    pub(crate) fn public(&self) -> Vec<u8> {
        match self {
            Self::P256(pair) => pair.public_key().as_ref().to_vec(),
            Self::Rsa(pair) => pair.public_key().as_ref().to_vec(),
        }
    }

    /// Signs with SHA-256. `None` where the system gives no random numbers.
    pub(crate) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        match self {
            Self::P256(pair) => Some(pair.sign(&random, message).ok()?.as_ref().to_vec()),
            Self::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).ok()?;
                Some(signature)
            }
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}
