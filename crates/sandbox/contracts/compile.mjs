// Compiles src/*.sol to artifacts.json, which the crate embeds. `node compile.mjs` writes the file;
// `node compile.mjs --stdout` prints it instead, for the test that compares.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import solc from 'solc'

const at = (path) => new URL(path, import.meta.url)

function sources() {
  const files = readdirSync(at('src/')).filter((file) => file.endsWith('.sol')).sort()
  return Object.fromEntries(files.map((file) => [file, { content: readFileSync(at(`src/${file}`), 'utf8') }]))
}

function compile() {
  const output = JSON.parse(solc.compile(JSON.stringify({
    language: 'Solidity',
    sources: sources(),
    settings: {
      evmVersion: 'cancun',
      // No metadata hash, so that the bytecode depends only on the code, not on comments.
      metadata: { appendCBOR: false, bytecodeHash: 'none' },
      optimizer: { enabled: true, runs: 200 },
      viaIR: true,
      outputSelection: { '*': { '*': ['evm.bytecode.object'] } },
    },
  })))
  const problems = output.errors ?? []
  if (problems.length > 0) throw new Error(problems.map((problem) => problem.formattedMessage).join('\n'))
  return output.contracts
}

function artifacts() {
  const named = Object.values(compile()).flatMap((contracts) => Object.entries(contracts))
  const deployable = named
    .map(([name, contract]) => [name, contract.evm.bytecode.object])
    .filter(([, code]) => code !== '')
    .sort(([a], [b]) => (a < b ? -1 : 1))
  const creation = Object.fromEntries(deployable.map(([name, code]) => [name, `0x${code}`]))
  return `${JSON.stringify({ compiler: solc.version(), creation }, null, 2)}\n`
}

if (process.argv.includes('--stdout')) process.stdout.write(artifacts())
else writeFileSync(at('artifacts.json'), artifacts())
