use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::asset::AssetId;
use crate::testing::{PAYEE, PAYER, THIEF, sign_hash, test_address, usdc_price};

const NOW: u64 = 1_767_225_600;

/// Payments of 0.01 USDC on Base Sepolia made by `@x402/evm` 2.27.0 (EIP-3009, Permit2) and `x402` 1.2.0 (version 1) at
/// [`NOW`], with the first two development accounts of anvil.
const PAYMENTS: &str = include_str!("payments.json");

fn payment_of_sdk(index: usize) -> Value {
    serde_json::from_str::<Value>(PAYMENTS).unwrap()[index].take()
}

fn price_of_sdk(transfer: TransferMethod) -> ExactPrice {
    ExactPrice { pay_to: address!("70997970C51812dc3A010C7d01b50e0d17dc79C8"), transfer, ..usdc_price() }
}

fn usdc() -> AssetProperties {
    AssetProperties::find_known(&AssetId { network: usdc_price().network, address: usdc_price().asset }).unwrap()
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_second(seconds.try_into().unwrap()).unwrap()
}

fn check(header: &str, terms: &PaymentTerms, price: &ExactPrice, now: Timestamp) -> Result<(), Box<Reason>> {
    PaymentHeader::parse_for_terms(header, terms)?.check_against_price(&entry(price), price, &usdc(), now)
}

/// The version 2 entry with this price.
fn entry(price: &ExactPrice) -> Value {
    let mut entry = json!({
        "scheme": "exact", "network": price.network, "amount": price.amount.to_string(),
        "asset": price.asset.to_string(), "payTo": price.pay_to.to_string(), "maxTimeoutSeconds": 60,
        "extra": {"name": "USDC", "version": "2"}, "of_the_seller": {"more": [1, null], "none": null},
    });
    if price.transfer == TransferMethod::Permit2 {
        entry["extra"]["assetTransferMethod"] = "permit2".into();
    }
    entry
}

/// Where the header differs from the price. `None` if it is accepted.
fn found(payment: &Value, version: X402Version, price: &ExactPrice) -> Option<String> {
    found_at(payment, version, price, NOW)
}

fn found_at(payment: &Value, version: X402Version, price: &ExactPrice, now: u64) -> Option<String> {
    found_in(payment, &terms(version, json!({})), price, now)
}

fn terms(version: X402Version, extensions: Value) -> PaymentTerms {
    let Value::Object(extensions) = extensions else { panic!("extensions are an object") };
    let resource = (version == X402Version::V2).then(
        || json!({"url": "https://api.sandbox.example/summarize/v1", "description": "", "mimeType": "application/json"}),
    );
    PaymentTerms {
        version,
        also_v1: false,
        moved: Default::default(),
        resource,
        entries: Vec::new(),
        extensions,
        offers: Vec::new(),
    }
}

fn found_in(payment: &Value, terms: &PaymentTerms, price: &ExactPrice, now: u64) -> Option<String> {
    let header = STANDARD.encode(payment.to_string());
    let reason = check(&header, terms, price, at(now)).err()?;
    assert_eq!(reason.code, ReasonCode::PaymentSignatureMismatch);
    Some(reason.place.unwrap_or_default())
}

fn permit_price() -> ExactPrice {
    ExactPrice { transfer: TransferMethod::Permit2, ..usdc_price() }
}

/// An honest EIP-3009 payload, changed and then signed by the payer in this domain.
fn eip3009_in(domain: &alloy_sol_types::Eip712Domain, change: impl Fn(&mut Value)) -> Value {
    let mut payload = json!({"signature": "", "authorization": {
        "from": test_address(PAYER).to_string(), "to": test_address(PAYEE).to_string(), "value": "10000",
        "validAfter": "0", "validBefore": (NOW + 60).to_string(), "nonce": B256::repeat_byte(7).to_string(),
    }});
    change(&mut payload["authorization"]);
    let hash = forms::deserialize_without_lists::<Eip3009Payload>(&payload)
        .unwrap()
        .authorization
        .message_to_sign()
        .eip712_signing_hash(domain);
    payload["signature"] = sign_hash(hash, PAYER).into();
    json!({"x402Version": 2, "payload": payload})
}

fn eip3009(change: impl Fn(&mut Value)) -> Value {
    eip3009_in(&typed_data::asset_domain(&usdc(), &usdc_price()), change)
}

/// Like [`eip3009_in`], for Permit2.
fn permit2_in(domain: &alloy_sol_types::Eip712Domain, change: impl Fn(&mut Value)) -> Value {
    let mut payload = json!({"signature": "", "permit2Authorization": {
        "from": test_address(PAYER).to_string(), "spender": PERMIT2_PROXY.to_string(), "nonce": "5",
        "permitted": {"token": usdc_price().asset.to_string(), "amount": "10000"}, "deadline": (NOW + 60).to_string(),
        "witness": {"to": test_address(PAYEE).to_string(), "validAfter": "0"},
    }});
    change(&mut payload["permit2Authorization"]);
    let hash = forms::deserialize_without_lists::<Permit2Payload>(&payload)
        .unwrap()
        .permit2_authorization
        .message_to_sign()
        .eip712_signing_hash(domain);
    payload["signature"] = sign_hash(hash, PAYER).into();
    json!({"x402Version": 2, "payload": payload})
}

fn permit2(change: impl Fn(&mut Value)) -> Value {
    permit2_in(&typed_data::permit2_domain(usdc_price().chain_id), change)
}

fn unchanged(_: &mut Value) {}

/// The JSON Pointer of a member of the authorisation.
fn of(payload: &str, member: &str) -> Option<String> {
    Some(format!("/payload/{payload}/{member}"))
}

#[test]
fn what_the_sdks_sign_is_let_out() {
    assert_eq!(found(&payment_of_sdk(0), X402Version::V2, &price_of_sdk(TransferMethod::Eip3009)), None);
    assert_eq!(found(&payment_of_sdk(1), X402Version::V2, &price_of_sdk(TransferMethod::Permit2)), None);
    assert_eq!(found(&payment_of_sdk(2), X402Version::V1, &price_of_sdk(TransferMethod::Eip3009)), None);
    assert_eq!(found(&eip3009(unchanged), X402Version::V2, &usdc_price()), None);
    assert_eq!(found(&permit2(unchanged), X402Version::V2, &permit_price()), None);
}

#[test]
fn a_signature_that_pays_another_is_not_let_out() {
    let thief = test_address(THIEF).to_string();
    let payment = eip3009(|authorization| authorization["to"] = thief.clone().into());
    assert_eq!(found(&payment, X402Version::V2, &usdc_price()), of("authorization", "to"));
}

#[test]
fn a_signature_over_another_amount_is_not_let_out() {
    for value in ["10001", "9999", "0", &U256::MAX.to_string()] {
        let payment = eip3009(|authorization| authorization["value"] = value.into());
        assert_eq!(found(&payment, X402Version::V2, &usdc_price()), of("authorization", "value"));
        let payment = permit2(|permit| permit["permitted"]["amount"] = value.into());
        assert_eq!(found(&payment, X402Version::V2, &permit_price()), of("permit2Authorization", "permitted/amount"));
    }
}

#[test]
fn a_signature_for_another_asset_or_chain_is_not_let_out() {
    let domain = typed_data::asset_domain(&usdc(), &usdc_price());
    let other_asset = alloy_sol_types::Eip712Domain { verifying_contract: Some(test_address(THIEF)), ..domain.clone() };
    let other_chain = alloy_sol_types::Eip712Domain { chain_id: Some(U256::from(8453)), ..domain.clone() };
    let other_name = alloy_sol_types::Eip712Domain { name: Some("USD Coin".into()), ..domain };
    for domain in [other_asset, other_chain, other_name, typed_data::permit2_domain(8453)] {
        assert_eq!(
            found(&eip3009_in(&domain, unchanged), X402Version::V2, &usdc_price()).as_deref(),
            Some("/payload/signature")
        );
        let found = found(&permit2_in(&domain, unchanged), X402Version::V2, &permit_price());
        assert_eq!(found.as_deref(), Some("/payload/signature"));
    }
    let other = |permit: &mut Value| permit["permitted"]["token"] = test_address(THIEF).to_string().into();
    assert_eq!(found(&permit2(other), X402Version::V2, &permit_price()), of("permit2Authorization", "permitted/token"));
}

#[test]
fn a_signature_of_another_than_from_is_not_let_out() {
    let mut payment = eip3009(unchanged);
    payment["payload"]["authorization"]["nonce"] = B256::repeat_byte(8).to_string().into();
    assert_eq!(found(&payment, X402Version::V2, &usdc_price()).as_deref(), Some("/payload/signature"));
}

#[test]
fn a_signature_lasts_no_longer_than_the_price_says() {
    let latest = NOW + 60 + MAX_CLOCK_SKEW;
    for end in [NOW + 1, NOW + 60, latest] {
        assert_eq!(
            found(&eip3009(|a| a["validBefore"] = end.to_string().into()), X402Version::V2, &usdc_price()),
            None
        );
        assert_eq!(found(&permit2(|p| p["deadline"] = end.to_string().into()), X402Version::V2, &permit_price()), None);
    }
    let ten_years = U256::from(NOW) + U256::from(315_360_000);
    for end in [U256::ZERO, U256::from(NOW), U256::from(latest + 1), ten_years, U256::from(u64::MAX), U256::MAX] {
        let payment = eip3009(|authorization| authorization["validBefore"] = end.to_string().into());
        assert_eq!(found(&payment, X402Version::V2, &usdc_price()), of("authorization", "validBefore"), "{end}");
        let payment = permit2(|permit| permit["deadline"] = end.to_string().into());
        assert_eq!(found(&payment, X402Version::V2, &permit_price()), of("permit2Authorization", "deadline"), "{end}");
    }
    let endless = ExactPrice { max_timeout_seconds: u64::MAX, ..usdc_price() };
    assert_eq!(found(&eip3009(unchanged), X402Version::V2, &endless), None, "the limits are asked elsewhere");
    assert_eq!(found_at(&eip3009(unchanged), X402Version::V2, &usdc_price(), 0), of("authorization", "validBefore"));
}

#[test]
fn a_signature_can_be_cashed_now() {
    for (start, is_late) in [(NOW - 600, false), (NOW + MAX_CLOCK_SKEW, false), (NOW + MAX_CLOCK_SKEW + 1, true)] {
        let late = |place| if is_late { place } else { None };
        let payment = eip3009(|authorization| authorization["validAfter"] = start.to_string().into());
        assert_eq!(found(&payment, X402Version::V2, &usdc_price()), late(of("authorization", "validAfter")));
        let payment = permit2(|permit| permit["witness"]["validAfter"] = start.to_string().into());
        let place = late(of("permit2Authorization", "witness/validAfter"));
        assert_eq!(found(&payment, X402Version::V2, &permit_price()), place);
    }
}

#[test]
fn a_permit_is_for_the_proxy_and_its_witness_is_the_payee() {
    let thief = test_address(THIEF).to_string();
    let payment = permit2(|permit| permit["spender"] = thief.clone().into());
    assert_eq!(found(&payment, X402Version::V2, &permit_price()), of("permit2Authorization", "spender"));
    let payment = permit2(|permit| permit["witness"]["to"] = thief.clone().into());
    assert_eq!(found(&payment, X402Version::V2, &permit_price()), of("permit2Authorization", "witness/to"));
}

#[test]
fn the_payload_is_of_the_kind_that_the_entry_demands() {
    let payload = Some("/payload".to_owned());
    assert_eq!(found(&permit2(unchanged), X402Version::V2, &usdc_price()), payload);
    assert_eq!(found(&eip3009(unchanged), X402Version::V2, &permit_price()), payload);
    let mut both = eip3009(unchanged);
    both["payload"]["permit2Authorization"] = permit2(unchanged)["payload"]["permit2Authorization"].take();
    assert_eq!(found(&both, X402Version::V2, &usdc_price()), payload);
    assert_eq!(found(&both, X402Version::V2, &permit_price()), payload);
}

#[test]
fn a_payload_has_one_form() {
    let good = || eip3009(unchanged);
    let changed = |pointer: &str, value: Value| {
        let (parent, member) = pointer.rsplit_once('/').unwrap();
        let mut payment = good();
        payment.pointer_mut(parent).unwrap()[member] = value;
        payment
    };
    let listed = json!([good()["payload"]["signature"], good()["payload"]["authorization"]]);
    let broken = [
        changed("/payload", Value::Null),
        changed("/payload", listed),
        changed("/payload/more", 1.into()),
        changed("/payload/permissionContext", "0x".into()),
        changed("/payload/signature", Value::Null),
        changed("/payload/authorization", json!([])),
        changed("/payload/authorization/more", 1.into()),
        changed("/payload/authorization/value", 10_000.into()),
        changed("/payload/authorization/value", "010000".into()),
        changed("/payload/authorization/to", "summarizeagent.eth".into()),
        changed("/payload/authorization/nonce", "0x07".into()),
        changed("/payload/authorization/validBefore", (NOW + 60).into()),
    ];
    for payment in broken {
        assert_eq!(found(&payment, X402Version::V2, &usdc_price()).as_deref(), Some("/payload"), "{payment}");
    }
    let mut extra = permit2(unchanged);
    extra["payload"]["permit2Authorization"]["witness"]["extra"] = "0x".into();
    assert_eq!(found(&extra, X402Version::V2, &permit_price()).as_deref(), Some("/payload"));
}

#[test]
fn what_only_the_chain_can_check_is_not_let_out() {
    for signature in [format!("0x{}", "11".repeat(200)), "0x".to_owned(), "no".to_owned()] {
        let mut payment = eip3009(unchanged);
        payment["payload"]["signature"] = signature.into();
        assert_eq!(found(&payment, X402Version::V2, &usdc_price()).as_deref(), Some("/payload/signature"));
    }
}

#[test]
fn a_header_does_not_contradict_the_entry() {
    let accepting = |change: &dyn Fn(&mut Value)| {
        let mut payment = payment_of_sdk(0);
        change(&mut payment["accepted"]);
        found(&payment, X402Version::V2, &price_of_sdk(TransferMethod::Eip3009))
    };
    let accepted = Some("/accepted".to_owned());
    assert_eq!(accepting(&|accepted| accepted["amount"] = "1".into()), accepted);
    assert_eq!(accepting(&|accepted| accepted["payTo"] = test_address(THIEF).to_string().into()), accepted);
    assert_eq!(accepting(&|accepted| accepted["scheme"] = "upto".into()), accepted);
    assert_eq!(accepting(&|accepted| *accepted = Value::Null), accepted);

    let claiming = |member: &str, value: Value| {
        let mut payment = payment_of_sdk(2);
        payment[member] = value;
        found(&payment, X402Version::V1, &price_of_sdk(TransferMethod::Eip3009))
    };
    assert_eq!(claiming("network", "base".into()).as_deref(), Some("/network"));
    assert_eq!(claiming("network", "eip155:84532".into()).as_deref(), Some("/network"));
    assert_eq!(claiming("scheme", "upto".into()).as_deref(), Some("/scheme"));
    assert_eq!(claiming("x402Version", 2.into()).as_deref(), Some("/x402Version"));
    assert_eq!(claiming("x402Version", "1".into()).as_deref(), Some("/x402Version"));
    let of_v2 = found(&payment_of_sdk(0), X402Version::V1, &price_of_sdk(TransferMethod::Eip3009));
    assert_eq!(of_v2.as_deref(), Some("/x402Version"));
}

#[test]
fn no_further_signature_of_the_payer_leaves_with_the_header() {
    let demanded = json!({
        "eip2612GasSponsoring": {"info": {"version": "1"}},
        "erc20ApprovalGasSponsoring": {"info": {}},
        "offer-receipt": {"info": {"offers": [{"signature": "0x"}]}},
        "payment-identifier": {"info": {"required": false}},
        "bazaar": {"number": 1.0},
    });
    let with = |extensions: Value| {
        let mut payment = permit2(unchanged);
        payment["extensions"] = extensions;
        found_in(&payment, &terms(X402Version::V2, demanded.clone()), &permit_price(), NOW)
    };
    let place = Some("/extensions".to_owned());
    for further in [
        json!({"eip2612GasSponsoring": {"info": {"version": "1", "signature": "0x"}}}),
        json!({"erc20ApprovalGasSponsoring": {"info": {"signedTransaction": "0x"}}}),
        json!({"offer-receipt": {"info": {"offers": []}}}),
        json!({"unknown": {}}),
        json!({"payment-identifier": {"info": {"required": false, "id": "short"}}}),
        json!({"payment-identifier": {"info": {"required": false, "id": "0x".repeat(65)}}}),
        json!({"payment-identifier": {"info": {"required": false, "id": "pay_7d5d747be160", "signature": "0x"}}}),
        json!([]),
    ] {
        assert_eq!(with(further.clone()), place, "{further}");
    }
    // Every client repeats the seller's extensions.
    assert_eq!(with(demanded.clone()), None);
    for echo in [
        json!({"bazaar": {"number": 1}}),
        json!({"bazaar": null, "unknown": null}),
        json!({"bazaar": {"number": 1.0, "schema": null}}),
        json!({"payment-identifier": {"info": {"required": false, "id": "pay_7d5d747be160e280504c099d984bcfe0"}}}),
        json!({}),
        Value::Null,
    ] {
        assert_eq!(with(echo.clone()), None, "{echo}");
    }
}

#[test]
fn nothing_leaves_beside_what_x402_has() {
    let price = price_of_sdk(TransferMethod::Eip3009);
    let further = json!({"signature": "0x"});
    let with = |version: X402Version, pointer: &str, value: &Value| {
        let mut payment = payment_of_sdk(if version == X402Version::V1 { 2 } else { 0 });
        assert_eq!(found(&payment, version, &price), None);
        let (parent, member) = pointer.rsplit_once('/').unwrap();
        payment.pointer_mut(parent).unwrap()[member] = value.clone();
        found(&payment, version, &price)
    };
    let beside = Some(String::new());
    for member in ["/permit", "/accepted", "/resource", "/extensions"] {
        assert_eq!(with(X402Version::V1, member, &further), beside, "{member}");
    }
    for member in ["/permit", "/scheme", "/network"] {
        assert_eq!(with(X402Version::V2, member, &further), beside, "{member}");
    }
    for (below, members) in [
        ("/resource", ["permit", "url", "description"]),
        ("/accepted", ["permit", "amount", "of_the_seller"]),
        ("/accepted/extra", ["permit", "name", "version"]),
    ] {
        let place = format!("/{}", below.split('/').nth(1).unwrap());
        for member in members {
            let found = with(X402Version::V2, &format!("{below}/{member}"), &further);
            assert_eq!(found.as_deref(), Some(&*place), "{below}/{member}");
        }
    }
    for (member, value) in [("/resource", json!("0x")), ("/accepted/of_the_seller", json!({"more": [1, 2]}))] {
        assert!(with(X402Version::V2, member, &value).is_some(), "{member}");
    }
}

/// The Python client writes every member of its model, and those without a value as `null`.
#[test]
fn echo_that_differs_by_nulls_alone_is_an_echo() {
    let price = price_of_sdk(TransferMethod::Eip3009);
    let with = |change: &dyn Fn(&mut Value)| {
        let mut payment = payment_of_sdk(0);
        change(&mut payment);
        found(&payment, X402Version::V2, &price)
    };
    for pointer in ["/resource/iconUrl", "/resource/mimeType", "/accepted/outputSchema", "/accepted/extra/permit"] {
        let (parent, member) = pointer.rsplit_once('/').unwrap();
        let null = with(&|payment| payment.pointer_mut(parent).unwrap()[member] = Value::Null);
        assert_eq!(null, None, "{pointer}");
        let more = with(&|payment| payment.pointer_mut(parent).unwrap()[member] = "0x".into());
        assert!(more.is_some(), "{pointer}");
    }
    assert_eq!(with(&|payment| payment["extensions"] = Value::Null), None);
    for pointer in ["/accepted/payTo", "/accepted/amount", "/accepted/asset", "/payload", "/payload/signature"] {
        let unsaid = with(&|payment| *payment.pointer_mut(pointer).unwrap() = Value::Null);
        assert!(unsaid.is_some(), "{pointer}");
    }
    let entry = json!({"scheme": "exact", "extra": null, "more": {"of": [{"a": 1}]}});
    for (accepted, is_echo) in [
        (json!({"scheme": "exact", "extra": {}}), true),
        (json!({"scheme": "exact", "extra": {"name": "USDC"}}), false),
        (json!({"more": {"of": [{"a": 1, "b": null}], "further": null}}), true),
        (json!({"more": {"of": [{"a": 1, "b": 0}]}}), false),
        (json!({"more": {"of": [{"a": 1}, null]}}), false),
    ] {
        assert_eq!(is_subset_of_entry(&accepted, &entry), is_echo, "{accepted}");
    }
}

/// Clients drop unknown members, use their own number notation, and write defaults for missing members.
#[test]
fn what_clients_make_of_the_terms_is_let_out() {
    let price = price_of_sdk(TransferMethod::Eip3009);
    let of_python = |payment: &mut Value| payment["accepted"]["of_the_seller"] = json!({"none": null});
    let of_javascript = |payment: &mut Value| payment["accepted"]["of_the_seller"] = json!({"more": [1.0, null]});
    let of_rust = |payment: &mut Value| payment["resource"] = json!({"url": payment["resource"]["url"]});
    let unsaid = |payment: &mut Value| payment["resource"] = Value::Null;
    for change in [of_python as fn(&mut Value), of_javascript, of_rust, unsaid] {
        let mut payment = payment_of_sdk(0);
        change(&mut payment);
        assert_eq!(found(&payment, X402Version::V2, &price), None, "{payment}");
    }
    let mut entry = entry(&price);
    entry.as_object_mut().unwrap().remove("extra");
    let of = |extra: Value| {
        let mut accepted = entry.clone();
        accepted["extra"] = extra;
        is_subset_of_entry(&accepted, &entry)
    };
    assert!(of(json!({})) && !of(json!({"permit": "0x"})) && !of(json!([])));
}

/// Clients of either version can pay a seller that demands the same in both.
#[test]
fn terms_in_both_versions_are_paid_in_either() {
    let price = price_of_sdk(TransferMethod::Eip3009);
    let both = PaymentTerms { also_v1: true, ..terms(X402Version::V2, json!({})) };
    let of_v1 = payment_of_sdk(2);
    assert_eq!(found_in(&of_v1, &both, &price, NOW), None);
    assert_eq!(found_in(&payment_of_sdk(0), &both, &price, NOW), None);
    assert_eq!(found(&of_v1, X402Version::V2, &price).as_deref(), Some("/x402Version"));
    let thief = ExactPrice { pay_to: test_address(THIEF), ..price.clone() };
    assert_eq!(found_in(&of_v1, &both, &thief, NOW), of("authorization", "to"));
    let mut mixed = of_v1;
    mixed["accepted"] = payment_of_sdk(0)["accepted"].take();
    assert_eq!(found_in(&mixed, &both, &price, NOW), Some(String::new()));
}

#[test]
fn a_header_that_cannot_be_decoded_is_not_let_out() {
    let good = STANDARD.encode(eip3009(unchanged).to_string());
    let twice = eip3009(unchanged).to_string().replacen("{\"payload\"", "{\"x402Version\":2,\"payload\"", 1);
    // Three bytes are four base64 characters.
    let of_length = |bytes: usize| STANDARD.encode(format!("{:bytes$}", eip3009(unchanged).to_string()));
    let (longest, long) = (of_length(MAX_HEADER_BYTES / 4 * 3), of_length(MAX_HEADER_BYTES / 4 * 3 + 1));
    let checked = |header: &str| check(header, &terms(X402Version::V2, json!({})), &usdc_price(), at(NOW));
    assert_eq!((checked(&good), checked(&longest)), (Ok(()), Ok(())));
    for header in
        ["", "e30=", "e30", "W10=", &good[..good.len() - 4], &STANDARD.encode(twice), &long, &format!(" {good}")]
    {
        assert_eq!(checked(header).unwrap_err().code, ReasonCode::PaymentSignatureMismatch, "{header}");
    }
}

proptest! {
    #[test]
    fn no_changed_byte_lets_anything_else_out(at in any::<prop::sample::Index>(), byte: u8) {
        let honest = eip3009(unchanged).to_string();
        let mut changed = honest.into_bytes();
        let at = at.index(changed.len());
        changed[at] = byte;
        if let Ok(payment) = serde_json::from_slice::<Value>(&changed)
            && found(&payment, X402Version::V2, &usdc_price()).is_none()
        {
            let lower = |payment: &Value| payment["payload"].to_string().to_lowercase();
            prop_assert_eq!(lower(&payment), lower(&eip3009(unchanged)), "but for the case of hex digits");
        }
    }

    #[test]
    fn no_noise_is_let_out(header in "\\PC{0,60}", bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        for header in [header, STANDARD.encode(bytes)] {
            for version in [X402Version::V1, X402Version::V2] {
                let terms = terms(version, json!({}));
                prop_assert!(check(&header, &terms, &usdc_price(), at(NOW)).is_err());
            }
        }
    }
}
