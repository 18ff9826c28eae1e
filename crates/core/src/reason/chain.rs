//! Rows of the registry: the name, and its records on the chain.

macro_rules! rows {
    ([$next:ident $($further:ident)*] $($before:tt)*) => { $next! { [$($further)*] $($before)*
        // name
        NameInvalid "name-invalid" Fail Name "X-1" Asker false
            "The name is not an ENS name."
            "The input does not normalise under ENSIP-15, is empty, has an empty label or is longer than 255 bytes. No question was sent anywhere. Look-alike names are often refused here: type the name yourself rather than copying it.";

        // records: the chain
        RpcUnreachable "rpc-unreachable" Unknown Records "" Operator true
            "Too few RPC endpoints gave a usable answer."
            "The RPC endpoints timed out, refused, or answered with something that is not the JSON-RPC answer that was asked for: all of them or, where several must agree (--quorum), too many of them. Nothing is known about the name. Add endpoints with --rpc, or try again.";
        RpcDisagree "rpc-disagree" Unknown Records "X-7" Operator true
            "The RPC endpoints contradict each other."
            "Endpoints were asked about the same block at the same time, and too few of them, counted by operator, say the same: another block at that height, or other records in it. One of them lies or is broken; which one is not known. The evidence names what each said. Add endpoints of further operators, or leave the liar out.";
        ProofRefused "proof-refused" Unknown Records "X-7" Operator true
            "No RPC endpoint proved the state of the chain."
            "With --proof state-proof the records are computed here, from accounts, storage and code that an endpoint proves against the block's header. At least one endpoint gave a proof that does not hold: it lies or is broken. The others gave none or did the same, so nothing is known about the name. The evidence names what each did. Leave the liar out, and add endpoints that serve eth_getProof for finalized blocks.";
        RpcWrongChain "rpc-wrong-chain" Unknown Records "" Operator false
            "An RPC endpoint serves another chain."
            "The endpoint's chain id is not the configured one, or its chain begins with another block, so its records would be those of another world. Point --rpc at a node of the right chain, or set the chain id (and the key genesis) that you mean.";
        BlockUnavailable "block-unavailable" Unknown Records "" Operator true
            "The chosen block is not available."
            "The endpoint does not have the block that was asked for: it does not exist yet, was pruned, or the tag is not supported. Choose another --block, or an archive endpoint.";
        ChainBehind "chain-behind" Unknown Records "X-6" Operator true
            "The endpoint's finalized block is too old."
            "The finalized header is more than 25 minutes old on mainnet, or 45 on another chain. The chain or the endpoint has stopped, so the records may have changed since. Use another endpoint, or wait. A block that was chosen by number is behind for the gate and for payments, which are about now: ask without one.";
        RecordPending "record-pending" Unknown Records "X-6" Nobody true
            "What the chain says of the name has changed since the finalized block."
            "The records or the holder at the newest block differ from those at the finalized one. Until the newer block is final neither can be relied on. Ask again in about 15 minutes.";
        SingleRpc "single-rpc" Warn Records "X-7" Operator false
            "One RPC operator alone vouches for the records."
            "Only one endpoint was asked, and nothing proves its answer. A lying endpoint could show any record. Configure endpoints of several operators, or your own node (own = true).";
        CcipFailed "ccip-failed" Unknown Records "" Publisher true
            "The off-chain gateway of the name failed."
            "The name's records live off chain (EIP-3668, CCIP-Read) and the gateway that the resolver names could not be asked: it is down, forbidden, sends too much, loops, or the reply does not come from the contract that was called. Nothing is known about the records.";
        ResolverFailed "resolver-failed" Unknown Records "" Publisher true
            "The name's resolver contract failed."
            "The resolver reverts, uses up its gas, or answers with bytes that are not the ABI of a text record. That is not the same as a missing record, so nothing is concluded from it. The publisher should set a working resolver.";
        LocalLimit "local-limit" Unknown Records "" Operator true
            "The reading met a bound of this resolver."
            "This resolver bounds what one name may cost it: the bytes of an endpoint's reply and, with --proof state-proof, the runs, gas, accounts and storage slots of a call that is computed here. The name needs more, or a block that cannot be computed here. Nothing is known about the records, and nothing is said against the publisher. The evidence names the bound. An endpoint that floods causes the same; it is named: ask another one, or demand a grade of proof that computes nothing here (--proof quorum).";
        ResolverMissing "resolver-missing" Fail Records "" Publisher false
            "The name has no resolver."
            "The name is registered, but no resolver contract is set for it, or none has code at that address; so it has no records. This absence is proven at the block. The publisher must set a resolver and the six cl.* records.";
        NameUnregistered "name-unregistered" Fail Records "" Asker false
            "The name is not registered."
            "The name has no owner at the block, and no ancestor answers for it with a wildcard resolver. Check the spelling: an unregistered look-alike can be bought by anyone.";
        NameWildcard "name-wildcard" Warn Records "X-5" Publisher false
            "An ancestor's resolver answers for the name."
            "The name has no resolver of its own: the resolver of an ancestor answers for every name below it (ENSIP-10). The holder of the ancestor controls this name.";
        RecordOffchain "record-offchain" Warn Records "X-5" Publisher false
            "The records come from an off-chain gateway."
            "The resolver fetched the records from a gateway through CCIP-Read and accepted them by its own rule, often a signature. They are as good as that signer, not as good as the chain.";
        NameExpired "name-expired" Warn Records "X-4" Publisher false
            "The registration of the name has expired."
            "The name still resolves, but its registration is past its expiry. A .eth name can be renewed for 90 more days; then anyone can register it and point it elsewhere (name-released). The publisher must renew it.";
        NameReleased "name-released" Warn Records "X-4" Publisher false
            "The registration of the name has expired, and anyone may register it."
            "The registration of this .eth name expired more than 90 days ago, so the registrar's grace period is over. The old records still resolve, but anyone may register the name now. The gate denies such a name by default (gate.deny). The publisher must register it again before someone else does.";
        NameExpiring "name-expiring" Warn Records "X-4" Publisher false
            "The registration of the name expires within 30 days."
            "If it is not renewed anybody can register the name later and point it elsewhere. The publisher should renew it.";
        HolderUnreadable "holder-unreadable" Warn Records "X-3" Nobody false
            "The holder of the name cannot be read: the name lives in ENSv2."
            "The registry of ENSv1 does not lead to the resolver that the Universal Resolver finds, so the name, one of its ancestors, or the name in cl.owner (where the place is cl.owner) has migrated to ENSv2. Holder and expiry in ENSv1 are stale and are ignored: both are unknown, and cl.owner is neither proven nor contradicted. The records come from ENSv2. Policies that demand a proven owner deny such a name.";
        OwnerUnproven "owner-unproven" Warn Records "X-3" Publisher false
            "The chain does not show that cl.owner controls the name."
            "cl.owner is the publisher's own word. It is proven only if the holder of the name, at the same block, is the address of the owner's name or the holder of the owner's name. Here it is neither, or it could not be read.";
        TxtMissing "txt-missing" Fail Records "CL-35" Publisher false
            "A required text record is not set."
            "The specification demands six text records: cl.entry, cl.agentcard, cl.cid.agentcard, cl.agentcard.mirror.ipfs, cl.checksum.agentcard and cl.owner. The resolver answered that this one is not set.";
        TxtKeyNearMiss "txt-key-near-miss" Warn Records "CL-86" Publisher false
            "A text record has almost the key of a missing one."
            "A required record is not set, and one is set whose key differs from it in its separators, case or order, such as cl.agent.card. It is never read as the missing record. Set the value under the right key, and clear the other.";
        TxtUnsafeCharacters "txt-unsafe-characters" Fail Records "X-2" Publisher false
            "A text record holds characters that must not be there."
            "The value holds control, bidirectional, invisible or other unsafe characters outside of ENS names in normal form, or is not valid UTF-8. Such a value can look like another one. Set the record again as plain text.";
        TxtValueInexact "txt-value-inexact" Fail Records "CL-52" Publisher false
            "A text record equals its value only after clean-up."
            "The value has surrounding white space, or differs from the card only in upper and lower case. Records must match exactly, byte for byte. Set the record again without the difference.";
    } };
}

pub(super) use rows;
