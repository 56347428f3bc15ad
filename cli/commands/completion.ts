import { argument, defineCommand, type CommandNode, type LoadedCommand } from '../shell/command.js';
import { UsageError } from '../shell/exit.js';

const SHELLS: Record<string, (tree: Completions) => string> = { bash: bashScript, zsh: zshScript, fish: fishScript };
const GLOBAL_OPTIONS = ['--json', '--quiet', '--no-color', '--no-input', '--data-dir', '--env-file', '--help'];

/** The words that may follow each chain of words: `project` -> create, list, …; `project create` -> --plan, …. */
type Completions = Map<string, { words: string[]; options: string[] }>;

/** The command that prints completion scripts for `commands`; it is handed them because it is one of them itself. */
export function createCompletion(commands: readonly CommandNode[]): LoadedCommand {
  return defineCommand({
    examples: [
      'source <(bsvc completion bash)',
      'bsvc completion zsh > ~/.zfunc/_bsvc',
      'bsvc completion fish > ~/.config/fish/completions/bsvc.fish',
    ],
    parameters: { shell: argument('shell', 'bash, zsh or fish') },
    async run(_context, { shell }) {
      const write = Object.hasOwn(SHELLS, shell) ? SHELLS[shell] : undefined;
      if (!write) throw new UsageError(`There is no completion for "${shell}"; choose one of bash, zsh, fish.`);
      const tree: Completions = new Map();
      await collect(commands, [], tree);
      const script = write(tree);
      return { json: { shell, script }, quiet: script, text: () => script };
    },
  });
}

async function collect(nodes: readonly CommandNode[], path: string[], tree: Completions): Promise<void> {
  tree.set(path.join(' '), { words: nodes.map(({ name }) => name), options: GLOBAL_OPTIONS });
  for (const node of nodes) {
    const here = [...path, node.name];
    if (node.commands) {
      await collect(node.commands, here, tree);
      continue;
    }
    const { parameters } = (await node.load()).default;
    const options = Object.values(parameters).flatMap(({ kind, words }) => {
      if (kind === 'argument') return [];
      return kind === 'secret' ? [`--${words}-stdin`, `--${words}-env`] : [/--[\w-]+/.exec(words)![0]];
    });
    const words = node.name === 'completion' ? Object.keys(SHELLS) : [];
    tree.set(here.join(' '), { words, options: [...options, ...GLOBAL_OPTIONS] });
  }
}

function bashScript(tree: Completions): string {
  const cases = [...tree].map(
    ([path, { words, options }]) =>
      `    ${JSON.stringify(path)}) words="${words.join(' ')}"; options="${options.join(' ')}" ;;`,
  );
  return `# bsvc completion for bash: source <(bsvc completion bash)
_bsvc() {
  local current="\${COMP_WORDS[COMP_CWORD]}" path="" word words="" options=""
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$path|$word" in
${steps(tree)
  .map(([from, word, to]) => `      ${JSON.stringify(`${from}|${word}`)}) path=${JSON.stringify(to)} ;;`)
  .join('\n')}
    esac
  done
  case "$path" in
${cases.join('\n')}
  esac
  if [[ "$current" == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  elif [[ -n "$words" ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  else
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}
complete -o filenames -F _bsvc bsvc`;
}

function zshScript(tree: Completions): string {
  const cases = [...tree].map(
    ([path, { words, options }]) =>
      `    ${JSON.stringify(path)}) words_here=(${words.join(' ')}); options_here=(${options.join(' ')}) ;;`,
  );
  return `#compdef bsvc
_bsvc() {
  local chain="" word
  local -a words_here options_here
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$chain|$word" in
${steps(tree)
  .map(([from, word, to]) => `      ${JSON.stringify(`${from}|${word}`)}) chain=${JSON.stringify(to)} ;;`)
  .join('\n')}
    esac
  done
  case "$chain" in
${cases.join('\n')}
  esac
  if [[ "\${words[CURRENT]}" == -* ]]; then
    compadd -- $options_here
  elif (( \${#words_here} )); then
    compadd -- $words_here
  else
    _files
  fi
}
if [ "$funcstack[1]" = "_bsvc" ]; then _bsvc "$@"; else compdef _bsvc bsvc; fi`;
}

function fishScript(tree: Completions): string {
  const lines = [...tree].flatMap(([path, { words, options }]) => {
    const when = `-n '__bsvc_at ${JSON.stringify(path)}'`;
    const names = words.length > 0 ? [`complete -c bsvc -f ${when} -a '${words.join(' ')}'`] : [];
    return [...names, ...options.map((option) => `complete -c bsvc ${when} -l ${option.slice(2)}`)];
  });
  return `# bsvc completion for fish
function __bsvc_at
    set -l chain ""
    for word in (commandline -opc)[2..-1]
        switch "$chain|$word"
${steps(tree)
  .map(
    ([from, word, to]) =>
      `            case ${JSON.stringify(`${from}|${word}`)}\n                set chain ${JSON.stringify(to)}`,
  )
  .join('\n')}
        end
    end
    test "$chain" = "$argv[1]"
end
${lines.join('\n')}`;
}

/** The steps from one chain of words by one more word to the next. */
function steps(tree: Completions): [from: string, word: string, to: string][] {
  return [...tree.keys()]
    .filter((path) => path !== '')
    .map((path) => {
      const words = path.split(' ');
      return [words.slice(0, -1).join(' '), words.at(-1)!, path];
    });
}
