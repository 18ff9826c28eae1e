//! Rows of the registry: the name, and its records on the chain.

macro_rules! rows {
    ([$next:ident $($further:ident)*] $($before:tt)*) => { $next! { [$($further)*] $($before)*
        // name
        NameInvalid "name-invalid" Fail Name "X-1" Asker false
            "The name is not an ENS name."
            "The input is empty, has an empty label, is longer than 255 bytes, or does not normalise under ENSIP-15. Look-alike names are often refused here: type the name instead of copying it.";

        // records: the chain
        RpcUnreachable "rpc-unreachable" Unknown Records "" Operator true
            "Too few RPC endpoints gave a usable answer."
            "Too many endpoints timed out, refused, or sent something other than a JSON-RPC answer. Nothing is known about the name. Add endpoints with --rpc, or try again.";
        RpcDisagree "rpc-disagree" Unknown Records "X-7" Operator true
            "The RPC endpoints contradict each other."
            "Too few operators report the same block and records, so one of them lies or is broken. The evidence shows what each reported. Add endpoints of further operators, or remove the wrong one.";
        ProofRefused "proof-refused" Unknown Records "X-7" Operator true
            "No RPC endpoint proved the state of the chain."
            "With --proof state-proof, an endpoint must prove accounts, storage and code against the block's header. At least one sent an invalid proof, and the others none. Remove the endpoint that the evidence names, and add some that serve eth_getProof for finalized blocks.";
        HeaderUnproven "header-unproven" Unknown Records "X-7" Operator true
            "The light client has no proven block header."
            "With --proof consensus-proof, two thirds of the sync committee must have signed the block header. The evidence names the cause: beacon endpoints are down or sent invalid data, the checkpoint is too old, or the chain does not finalize. Run clresolve doctor. Add beacon endpoints, or set a newer checkpoint.";
        RpcWrongChain "rpc-wrong-chain" Unknown Records "" Operator false
            "An RPC endpoint serves another chain."
            "The endpoint's chain id or block 0 differs from the configured chain. Point --rpc at a node of that chain, or set chain-id and genesis.";
        BlockUnavailable "block-unavailable" Unknown Records "" Operator true
            "The chosen block is not available."
            "The endpoint does not have the block: it does not exist yet, was pruned, or the tag is not supported. Choose another --block, or an archive endpoint.";
        ChainBehind "chain-behind" Unknown Records "X-6" Operator true
            "The endpoint's finalized block is too old."
            "The finalized block is more than 25 minutes old on mainnet, or 45 on another chain, so the records may have changed since. Use another endpoint, or wait. The gate and payments reject a block that was chosen by number: ask without --block.";
        RecordPending "record-pending" Unknown Records "X-6" Nobody true
            "The name's records or holder have changed since the finalized block."
            "The records or the holder at the newest block differ from the finalized ones. Neither can be relied on until the newer block is final. Ask again in about 15 minutes.";
        SingleRpc "single-rpc" Warn Records "X-7" Operator false
            "One RPC operator alone vouches for the records."
            "Nothing proves the answer of a single endpoint, which could show any record. Configure endpoints of several operators, or your own node (own = true).";
        CcipFailed "ccip-failed" Unknown Records "" Publisher true
            "The off-chain gateway of the name failed."
            "The name's records are off chain (ERC-3668, CCIP-Read). The gateway that the resolver names is down, forbidden or in a loop, sends too much, or its reply was rejected by the contract. Nothing is known about the records.";
        ResolverFailed "resolver-failed" Unknown Records "" Publisher true
            "The name's resolver contract failed."
            "The resolver reverts, runs out of gas, or returns bytes that are not an ABI-encoded text record. That does not show that a record is missing. The publisher should set a working resolver.";
        LocalLimit "local-limit" Unknown Records "" Operator true
            "Reading the name exceeded a limit of this resolver."
            "Reading the name exceeds a limit of this resolver: bytes of a reply or, with --proof state-proof, calls, gas, accounts or storage slots. The evidence names the limit. Use another endpoint if one floods, or --proof quorum.";
        ResolverMissing "resolver-missing" Fail Records "" Publisher false
            "The name has no resolver."
            "The name is registered but has no resolver contract, so it has no records. The publisher must set a resolver and the six cl.* records.";
        NameUnregistered "name-unregistered" Fail Records "" Asker false
            "The name is not registered."
            "The name has no owner, and no ancestor's wildcard resolver answers for it. Check the spelling: anyone can register a look-alike.";
        NameWildcard "name-wildcard" Warn Records "X-5" Publisher false
            "An ancestor's resolver answers for the name."
            "The name has no resolver of its own; the resolver of an ancestor answers for every name below it (ENSIP-10). The ancestor's holder controls this name.";
        RecordOffchain "record-offchain" Warn Records "X-5" Publisher false
            "The records come from an off-chain gateway."
            "The resolver accepted the records from a CCIP-Read gateway by its own rule, often a signature. They are only as trustworthy as that signer.";
        NameExpired "name-expired" Warn Records "X-4" Publisher false
            "The registration of the name has expired."
            "The name still resolves. A .eth name can be renewed for 90 days after its expiry; then anyone can register it (name-released). The publisher must renew it.";
        NameReleased "name-released" Warn Records "X-4" Publisher false
            "The registration of the name has expired, and anyone may register it."
            "This .eth name expired more than 90 days ago. The old records still resolve, but anyone may register the name. The gate denies it by default (gate.deny). The publisher must register it again.";
        NameExpiring "name-expiring" Warn Records "X-4" Publisher false
            "The registration of the name expires within 30 days."
            "If the name is not renewed, anyone can register it later and point it elsewhere. The publisher should renew it.";
        HolderUnreadable "holder-unreadable" Warn Records "X-3" Nobody false
            "The holder of the name cannot be read: the name lives in ENSv2."
            "The name, an ancestor, or the name in cl.owner has migrated to ENSv2. Holder and expiry in ENSv1 are stale, so both are unknown and cl.owner is unproven. Policies that require a proven owner deny the name.";
        OwnerUnproven "owner-unproven" Warn Records "X-3" Publisher false
            "The chain does not show that cl.owner controls the name."
            "cl.owner is a claim of the publisher. It is proven if, at the same block, the holder of the name is the address or the holder of the owner's name. Here it is neither, or could not be read.";
        TxtMissing "txt-missing" Fail Records "CL-35" Publisher false
            "A required text record is not set."
            "Six text records are required: cl.entry, cl.agentcard, cl.cid.agentcard, cl.agentcard.mirror.ipfs, cl.checksum.agentcard and cl.owner. Set the missing one.";
        TxtKeyNearMiss "txt-key-near-miss" Warn Records "CL-86" Publisher false
            "A text record has almost the key of a missing one."
            "The key of a set record differs from the missing one only in separators, case or order, such as cl.agent.card. Set the value under the right key, and clear the other.";
        TxtUnsafeCharacters "txt-unsafe-characters" Fail Records "X-2" Publisher false
            "A text record contains forbidden characters."
            "The value is not valid UTF-8, or has control, bidirectional or invisible characters, so it can look like another value. Set the record again as plain text.";
        TxtValueInexact "txt-value-inexact" Fail Records "CL-52" Publisher false
            "A text record equals its value only after clean-up."
            "The value has surrounding white space, or differs from the card only in case. Records must match byte for byte.";
    } };
}

pub(super) use rows;
