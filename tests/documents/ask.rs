async fn may_invoke(gate: &str, name: &str, verb: &str) -> reqwest::Result<bool> {
    let client = reqwest::Client::builder().timeout(std::time::Duration::from_secs(1)).build()?;
    let answer = client.get(format!("{gate}/{name}/{verb}")).send().await?;
    Ok(answer.status() == reqwest::StatusCode::OK)
}
