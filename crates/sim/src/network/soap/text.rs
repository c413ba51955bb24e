//! The text of messages: HTTP headers and SOAP envelopes, as sent by the OPC UA stacks of 2010.
//!
//! Only lengths are used. The text follows Part 6 version 1.02 (SOAP/HTTP, WS-SecureConversation) with WS-Addressing,
//! WS-Security and WS-Trust; identifiers have their usual length.

use super::Body;

/// Length of an application's X.509 certificate in bytes.
const CERTIFICATE: usize = 1_000;
/// Length of an RSA result with 2 048 bits, and of a SHA-1 digest, in bytes.
const RSA: usize = 256;
const DIGEST: usize = 20;

const HTTP_REQUEST: &str = "POST /UA/Server HTTP/1.1\r\nContent-Type: application/soap+xml; charset=utf-8\r\n\
    Host: plant.example:51211\r\nContent-Length: 12345\r\nAccept-Encoding: gzip, deflate\r\n\r\n";
const HTTP_RESPONSE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\
    Content-Type: application/soap+xml; charset=utf-8\r\nServer: Microsoft-HTTPAPI/2.0\r\n\
    Date: Fri, 18 Dec 2009 10:00:00 GMT\r\n\r\n";
const ENVELOPE: &str = "<s:Envelope xmlns:s=\"http://www.w3.org/2003/05/soap-envelope\" \
    xmlns:a=\"http://www.w3.org/2005/08/addressing\"><s:Header><a:Action s:mustUnderstand=\"1\">\
    http://opcfoundation.org/UA/2008/02/Services.wsdl/InvokeService</a:Action>\
    <a:MessageID>urn:uuid:01234567-89ab-cdef-0123-456789abcdef</a:MessageID><a:ReplyTo><a:Address>\
    http://www.w3.org/2005/08/addressing/anonymous</a:Address></a:ReplyTo>\
    <a:To s:mustUnderstand=\"1\">http://plant.example:51211/UA/Server</a:To></s:Header><s:Body></s:Body></s:Envelope>";
const BINARY_BODY: &str = "<InvokeServiceRequest xmlns=\"http://opcfoundation.org/UA/2008/02/Types.xsd\">\
    </InvokeServiceRequest>";

const NAMESPACES: &str =
    " xmlns:u=\"http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd\"";
const SECURITY: &str = "<o:Security s:mustUnderstand=\"1\" \
    xmlns:o=\"http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd\"></o:Security>";
const TIMESTAMP: &str = "<u:Timestamp u:Id=\"_0\"><u:Created>2009-12-18T10:00:00.000Z</u:Created>\
    <u:Expires>2009-12-18T10:05:00.000Z</u:Expires></u:Timestamp>";
const CONTEXT_TOKEN: &str = "<c:SecurityContextToken u:Id=\"uuid-01234567-89ab-cdef-0123-456789abcdef-1\" \
    xmlns:c=\"http://schemas.xmlsoap.org/ws/2005/02/sc\"><c:Identifier>\
    urn:uuid:01234567-89ab-cdef-0123-456789abcdef</c:Identifier></c:SecurityContextToken>";
const DERIVED_KEY: &str = "<c:DerivedKeyToken u:Id=\"_1\" xmlns:c=\"http://schemas.xmlsoap.org/ws/2005/02/sc\">\
    <o:SecurityTokenReference><o:Reference ValueType=\"http://schemas.xmlsoap.org/ws/2005/02/sc/sct\" \
    URI=\"#uuid-01234567-89ab-cdef-0123-456789abcdef-1\"/></o:SecurityTokenReference><c:Offset>0</c:Offset>\
    <c:Length>24</c:Length><c:Nonce>0123456789abcdef012345==</c:Nonce></c:DerivedKeyToken>";
const SIGNATURE: &str = "<Signature xmlns=\"http://www.w3.org/2000/09/xmldsig#\"><SignedInfo><CanonicalizationMethod \
    Algorithm=\"http://www.w3.org/2001/10/xml-exc-c14n#\"/><SignatureMethod \
    Algorithm=\"http://www.w3.org/2000/09/xmldsig#hmac-sha1\"/></SignedInfo><SignatureValue></SignatureValue><KeyInfo>\
    <o:SecurityTokenReference><o:Reference ValueType=\"http://schemas.xmlsoap.org/ws/2005/02/sc/dk\" URI=\"#_1\"/>\
    </o:SecurityTokenReference></KeyInfo></Signature>";
const REFERENCE: &str = "<Reference URI=\"#_0\"><Transforms><Transform \
    Algorithm=\"http://www.w3.org/2001/10/xml-exc-c14n#\"/></Transforms><DigestMethod \
    Algorithm=\"http://www.w3.org/2000/09/xmldsig#sha1\"/><DigestValue></DigestValue></Reference>";
const ENCRYPTED_DATA: &str = "<e:EncryptedData Id=\"_3\" Type=\"http://www.w3.org/2001/04/xmlenc#Content\" \
    xmlns:e=\"http://www.w3.org/2001/04/xmlenc#\"><e:EncryptionMethod \
    Algorithm=\"http://www.w3.org/2001/04/xmlenc#aes128-cbc\"/><KeyInfo xmlns=\"http://www.w3.org/2000/09/xmldsig#\">\
    <o:SecurityTokenReference><o:Reference ValueType=\"http://schemas.xmlsoap.org/ws/2005/02/sc/dk\" URI=\"#_2\"/>\
    </o:SecurityTokenReference></KeyInfo><e:CipherData><e:CipherValue></e:CipherValue></e:CipherData></e:EncryptedData>";
const ENCRYPTED_KEY: &str = "<e:EncryptedKey Id=\"uuid-01234567-89ab-cdef-0123-456789abcdef-2\" \
    xmlns:e=\"http://www.w3.org/2001/04/xmlenc#\"><e:EncryptionMethod \
    Algorithm=\"http://www.w3.org/2001/04/xmlenc#rsa-1_5\"/><KeyInfo xmlns=\"http://www.w3.org/2000/09/xmldsig#\">\
    <o:SecurityTokenReference><o:KeyIdentifier \
    ValueType=\"http://docs.oasis-open.org/wss/oasis-wss-soap-message-security-1.1#ThumbprintSHA1\">\
    </o:KeyIdentifier></o:SecurityTokenReference></KeyInfo><e:CipherData><e:CipherValue></e:CipherValue>\
    </e:CipherData></e:EncryptedKey>";
const BINARY_TOKEN: &str = "<o:BinarySecurityToken u:Id=\"uuid-01234567-89ab-cdef-0123-456789abcdef-3\" \
    ValueType=\"http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-x509-token-profile-1.0#X509v3\">\
    </o:BinarySecurityToken>";
const TOKEN_REQUEST: &str = "<t:RequestSecurityToken xmlns:t=\"http://schemas.xmlsoap.org/ws/2005/02/trust\">\
    <t:TokenType>http://schemas.xmlsoap.org/ws/2005/02/sc/sct</t:TokenType><t:RequestType>\
    http://schemas.xmlsoap.org/ws/2005/02/trust/Issue</t:RequestType><t:Entropy><t:BinarySecret>\
    0123456789abcdef0123456789abcdef0123456789ab</t:BinarySecret></t:Entropy><t:KeySize>256</t:KeySize>\
    </t:RequestSecurityToken>";

/// Length of `bytes` bytes in base64.
pub(super) const fn base64(bytes: usize) -> usize {
    bytes.div_ceil(3) * 4
}

fn http(is_request: bool) -> usize {
    if is_request { HTTP_REQUEST.len() } else { HTTP_RESPONSE.len() }
}

/// Number of signed parts of a message: timestamp, four addressing headers, body.
const SIGNED: usize = 6;

fn signature() -> usize {
    SIGNATURE.len() + base64(DIGEST) + SIGNED * (REFERENCE.len() + base64(DIGEST) + " u:Id=\"_9\"".len())
}

/// Length of a service request or response with `body` bytes in UA Binary.
pub(super) fn message(body: usize, kind: Body, is_request: bool, is_secured: bool) -> usize {
    let body = match kind {
        Body::Binary => BINARY_BODY.len() + base64(body),
        Body::Xml { factor_percent } => body * factor_percent as usize / 100,
    };
    let plain = http(is_request) + ENVELOPE.len();
    if !is_secured {
        return plain + body;
    }
    // Signature and body are encrypted; the ciphertext starts with a block and is padded to one.
    let signature = ENCRYPTED_DATA.len() + base64(signature() + 32);
    let headers =
        NAMESPACES.len() + SECURITY.len() + TIMESTAMP.len() + CONTEXT_TOKEN.len() + 2 * DERIVED_KEY.len();
    plain + headers + signature + ENCRYPTED_DATA.len() + base64(body + 32)
}

/// Length of the request for a security context token, or of its answer (WS-SecureConversation).
pub(super) fn handshake(is_request: bool) -> usize {
    let token = if is_request { BINARY_TOKEN.len() + base64(CERTIFICATE) } else { CONTEXT_TOKEN.len() };
    let signatures = 2 * signature() + base64(RSA);
    let headers = NAMESPACES.len()
        + SECURITY.len()
        + TIMESTAMP.len()
        + token
        + ENCRYPTED_KEY.len()
        + base64(RSA)
        + 2 * DERIVED_KEY.len();
    http(is_request)
        + ENVELOPE.len()
        + headers
        + 2 * ENCRYPTED_DATA.len()
        + base64(signatures + 32)
        + base64(TOKEN_REQUEST.len() + 32)
}
