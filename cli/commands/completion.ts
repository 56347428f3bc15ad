import { argument, defineCommand, type CommandNode, type LoadedCommand } from '../shell/command.js';
import type { Context } from '../shell/context.js';
import { UsageError } from '../view/exit.js';
import { chooseProject, projectOption } from '../ask/choose-project.js';
import { listCollections } from '../../src/features/collections/list-collections.js';
import { listOperators } from '../../src/features/operators/manage-operators.js';
import { listProjects } from '../../src/features/projects/project-store.js';

const SHELLS: Record<string, (tree: Completions) => string> = { bash: bashScript, zsh: zshScript, fish: fishScript };
const GLOBAL_OPTIONS = ['--json', '--quiet', '--no-color', '--no-input', '--data-dir', '--env-file', '--help'];

/** Names that only the store knows; the scripts ask for them by `bsvc completion <kind>`. */
const NAMES = ['projects', 'collections', 'operators'] as const;
type NameKind = (typeof NAMES)[number];

/**
 * The words that may follow each chain of words: `project` -> create, list, …; `project create` -> --plan, …. `names`:
 * what its first argument is one of.
 */
type Completions = Map<string, { words: string[]; options: string[]; names: NameKind | '' }>;

/** The command that prints completion scripts for `commands`; it is handed them because it is one of them itself. */
export function createCompletion(commands: readonly CommandNode[]): LoadedCommand {
  return defineCommand({
    examples: [
      'source <(bsvc completion bash)',
      'bsvc completion zsh > ~/.zfunc/_bsvc',
      'bsvc completion fish > ~/.config/fish/completions/bsvc.fish',
    ],
    details:
      'The scripts complete names of projects, collections and operators too; they ask for them by "bsvc completion projects" and the like.',
    parameters: { shell: argument('shell', 'bash, zsh or fish'), project: projectOption },
    async run(context, { shell, project }) {
      const kind = NAMES.find((name) => name === shell);
      if (kind) {
        const names = await listNames(context, kind, project);
        return { json: names, quiet: names, text: () => names.join('\n') };
      }
      const write = Object.hasOwn(SHELLS, shell) ? SHELLS[shell] : undefined;
      if (!write) throw new UsageError(`There is no completion for "${shell}"; choose one of bash, zsh, fish.`);
      const tree: Completions = new Map();
      await collect(commands, [], tree);
      const script = write(tree);
      return { json: { shell, script }, quiet: script, text: () => script };
    },
  });
}

async function listNames(context: Context, kind: NameKind, named: string | undefined): Promise<string[]> {
  if (kind === 'projects') return (await listProjects(await context.app())).map(({ name }) => name);
  if (kind === 'operators') return (await listOperators(await context.app())).map(({ email }) => email);
  const { app, project } = await chooseProject(context, named);
  return (await listCollections(app, project._id)).map(({ name }) => name);
}

async function collect(nodes: readonly CommandNode[], path: string[], tree: Completions): Promise<void> {
  tree.set(path.join(' '), { words: nodes.map(({ name }) => name), options: GLOBAL_OPTIONS, names: '' });
  for (const node of nodes) {
    const here = [...path, node.name];
    if (node.commands) {
      await collect(node.commands, here, tree);
      continue;
    }
    const { parameters } = (await node.load()).default;
    const options = Object.values(parameters).flatMap(({ kind, flags: words }) => {
      if (kind === 'argument') return [];
      return kind === 'secret' ? [`--${words}-stdin`, `--${words}-env`] : [/--[\w-]+/.exec(words)![0]];
    });
    const words = node.name === 'completion' ? Object.keys(SHELLS) : [];
    const first = Object.values(parameters).find(({ kind }) => kind === 'argument')?.flags;
    const names =
      node.name === 'add' || node.name === 'create' ? undefined : NAMES.find((kind) => kind === `${first}s`);
    tree.set(here.join(' '), { words, options: [...options, ...GLOBAL_OPTIONS], names: names ?? '' });
  }
}

function bashScript(tree: Completions): string {
  const cases = [...tree].map(
    ([path, { words, options, names }]) =>
      `    ${JSON.stringify(path)}) words="${words.join(' ')}"; options="${options.join(' ')}"; names="${names}" ;;`,
  );
  return `# bsvc completion for bash: source <(bsvc completion bash)
_bsvc() {
  local current="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" path="" word words="" options="" names="" project="$BSVC_PROJECT" last="" arguments=0
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [[ "$last" == --project ]] && project="$word"
    if [[ "$word" != -* && "$last" != --* ]]; then arguments=$((arguments + 1)); fi
    last="$word"
    case "$path|$word" in
${steps(tree)
  .map(([from, word, to]) => `      ${JSON.stringify(`${from}|${word}`)}) path=${JSON.stringify(to)}; arguments=0 ;;`)
  .join('\n')}
    esac
  done
  case "$path" in
${cases.join('\n')}
  esac
  if [[ "$before" == --project ]]; then
    COMPREPLY=($(compgen -W "$(bsvc completion projects 2>/dev/null)" -- "$current"))
  elif [[ "$current" == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  elif [[ -n "$names" && "$arguments" == 0 ]]; then
    COMPREPLY=($(compgen -W "$(BSVC_PROJECT="$project" bsvc completion "$names" --no-input 2>/dev/null)" -- "$current"))
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
    ([path, { words, options, names }]) =>
      `    ${JSON.stringify(path)}) words_here=(${words.join(' ')}); options_here=(${options.join(' ')}); names="${names}" ;;`,
  );
  return `#compdef bsvc
_bsvc() {
  local chain="" word names="" project="$BSVC_PROJECT" last="" arguments=0
  local -a words_here options_here
  for word in "\${(@)words[2,CURRENT-1]}"; do
    [[ "$last" == --project ]] && project="$word"
    if [[ "$word" != -* && "$last" != --* ]]; then arguments=$((arguments + 1)); fi
    last="$word"
    case "$chain|$word" in
${steps(tree)
  .map(([from, word, to]) => `      ${JSON.stringify(`${from}|${word}`)}) chain=${JSON.stringify(to)}; arguments=0 ;;`)
  .join('\n')}
    esac
  done
  case "$chain" in
${cases.join('\n')}
  esac
  if [[ "$last" == --project ]]; then
    compadd -- \${(f)"$(bsvc completion projects 2>/dev/null)"}
  elif [[ "\${words[CURRENT]}" == -* ]]; then
    compadd -- $options_here
  elif [[ -n "$names" && "$arguments" == 0 ]]; then
    compadd -- \${(f)"$(BSVC_PROJECT="$project" bsvc completion "$names" --no-input 2>/dev/null)"}
  elif (( \${#words_here} )); then
    compadd -- $words_here
  else
    _files
  fi
}
if [ "$funcstack[1]" = "_bsvc" ]; then _bsvc "$@"; else compdef _bsvc bsvc; fi`;
}

function fishScript(tree: Completions): string {
  const lines = [...tree].flatMap(([path, { words, options, names: kind }]) => {
    const when = `-n '__bsvc_at ${JSON.stringify(path)}'`;
    const names = words.length > 0 ? [`complete -c bsvc -f ${when} -a '${words.join(' ')}'`] : [];
    if (kind) names.push(`complete -c bsvc -f ${when} -a '(__bsvc_names ${kind})'`);
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
function __bsvc_names
    set -l words (commandline -opc)
    set -l at (contains -i -- --project $words)
    if test -n "$at"; and test (count $words) -gt $at
        bsvc completion $argv[1] --no-input --project $words[(math $at + 1)] 2>/dev/null
    else
        bsvc completion $argv[1] --no-input 2>/dev/null
    end
end
complete -c bsvc -l project -x -a '(bsvc completion projects 2>/dev/null)'
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
