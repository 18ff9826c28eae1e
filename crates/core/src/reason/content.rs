//! Rows of the registry: fetching the card, and verifying its bytes.

macro_rules! rows {
    ([$next:ident $($further:ident)*] $($before:tt)*) => { $next! { [$($further)*] $($before)*
        // fetch
        AgentcardUrlNotHttps "agentcard-url-not-https" Fail FetchHttps "CL-42" Publisher false
            "cl.agentcard is not an absolute https URL."
            "The card must be served over https from a host name. Set cl.agentcard to an https URL.";
        SourceForbidden "source-forbidden" Fail FetchHttps "CL-43" Publisher false
            "A URL leads to an address that must not be contacted."
            "The card's URL or a redirect leads to an IP address, a non-public host, an unusual port, user info or plain http. Such a URL can reach into the resolver's network, so the request was not sent.";
        SourceOversize "source-oversize" Fail FetchHttps "CL-43" Publisher false
            "A source sends more bytes than a card may have."
            "The body is longer than 256 KiB before or after decompression.";
        SourceUnavailable "source-unavailable" Warn FetchHttps "CL-43" Publisher true
            "One of the card's sources returned no card."
            "The host is down, slow, returns an error, or redirects in a loop. The other source may still prove the card.";
        GatewayLied "gateway-lied" Warn FetchIpfs "" Operator true
            "An IPFS gateway sent a wrong block."
            "The block that the gateway sent does not have the requested hash. It was discarded, and the gateway is not asked for a while. The publisher is not to blame.";
        CardUnreachable "card-unreachable" Unknown FetchHttps "CL-43" Publisher true
            "No source returned the card's bytes."
            "Neither the card's URL nor any IPFS gateway returned the card. Ask again, or contact the publisher.";

        // integrity
        CidMalformed "cid-malformed" Fail Integrity "CL-44" Publisher false
            "cl.cid.agentcard is not a CID."
            "The record is not a CID of version 0 or 1. Set it to the CID that your IPFS tool printed for the card or its folder.";
        CidHashForbidden "cid-hash-forbidden" Fail Integrity "CL-44" Publisher false
            "The CID uses a hash that proves nothing."
            "A CID on the way to the card uses sha1, a shortened digest, an identity hash over 128 bytes or an unknown function. Use sha2-256 (the default of every tool), sha2-512, blake2b-256 or blake3.";
        CidUnproven "cid-unproven" Unknown Integrity "CL-45" Publisher true
            "No gateway returned the blocks that prove the card."
            "The card was fetched, but no gateway has the blocks that link it to cl.cid.agentcard. The publisher should pin the content where public gateways find it; you can name a gateway that has it (--gateway).";
        CidMismatch "cid-mismatch" Fail Integrity "CL-45" Publisher false
            "The card's bytes are not the content of cl.cid.agentcard."
            "The card was changed or replaced without changing the record. Restore the released bytes, or release a new card with its new CID.";
        CidPathMissing "cid-path-missing" Fail Integrity "CL-45" Publisher false
            "The path of the mirror record does not exist under the CID."
            "The directory under the CID has no such entry. Correct the path in cl.agentcard.mirror.ipfs, or the CID.";
        CidPathNotFile "cid-path-not-file" Fail Integrity "CL-45" Publisher false
            "The path under the CID is not a file."
            "The CID and path lead to a directory. cl.agentcard.mirror.ipfs must hold the card's path below the directory's CID.";
        CidDagInvalid "cid-dag-invalid" Fail Integrity "CL-45" Publisher false
            "The content under the CID is not a well-formed UnixFS file."
            "The blocks have the right hashes, but their content is malformed, ambiguous, of an unsupported kind, or too deep or large. Add the card again with a common IPFS tool.";
        MirrorMalformed "mirror-malformed" Fail Integrity "CL-46" Publisher false
            "cl.agentcard.mirror.ipfs does not contain a CID and path."
            "The record must be an ipfs:// URI or a gateway URL with /ipfs/CID/path. Empty, . and .. segments, %2f and %00 are rejected.";
        MirrorCidMismatch "mirror-cid-mismatch" Fail Integrity "CL-47" Publisher false
            "The mirror record names another CID."
            "cl.agentcard.mirror.ipfs and cl.cid.agentcard name different CIDs (CIDs of version 0 are compared as version 1). Make the two records agree.";
        MirrorContentMismatch "mirror-content-mismatch" Fail Integrity "CL-48" Publisher false
            "The mirror's bytes differ from those of cl.agentcard."
            "The card's URL and the mirror serve two different cards. Publish the same bytes at both.";
        ChecksumMalformed "checksum-malformed" Fail Integrity "CL-49" Publisher false
            "cl.checksum.agentcard is not a SHA-256."
            "The record must be 64 hex digits, with or without the prefix sha256:.";
        ChecksumMismatch "checksum-mismatch" Fail Integrity "CL-50" Publisher false
            "The SHA-256 of the card is not the one in cl.checksum.agentcard."
            "The checksum is taken over the exact bytes received, without any clean-up of line ends or JSON. Either the card was changed without changing the record, or it was replaced.";
    } };
}

pub(super) use rows;
