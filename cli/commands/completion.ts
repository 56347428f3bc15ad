import { argument, defineCommand, optionalArgument, type CommandNode, type LoadedCommand } from '../shell/command.js';
import type { Context } from '../shell/context.js';
import { UsageError } from '../view/exit.js';
import { chooseProject } from '../ask/choose.js';
import { listCollections } from '../../src/features/collections/collection-store.js';
import { listOperators } from '../../src/features/operators/manage-operators.js';
import { listProjects } from '../../src/features/projects/project-store.js';

/** What each shell does at Tab: it asks `bsvc completion words`, and offers files where that knows nothing. */
const SCRIPTS: Readonly<Record<string, string>> = {
  bash: `# bsvc completion for bash: source <(bsvc completion bash)
_bsvc() {
  local IFS=$'\\n'
  COMPREPLY=($(bsvc completion words --no-input -- "\${COMP_WORDS[*]:1:COMP_CWORD-1}" "\${COMP_WORDS[COMP_CWORD]}" 2>/dev/null))
}
complete -o default -F _bsvc bsvc`,
  zsh: `#compdef bsvc
_bsvc() {
  local -a found
  found=(\${(f)"$(bsvc completion words --no-input -- "\${(pj:\\n:)words[2,CURRENT-1]}" "\${words[CURRENT]}" 2>/dev/null)"})
  if (( \${#found} )); then compadd -- $found; else _files; fi
}
if [ "$funcstack[1]" = "_bsvc" ]; then _bsvc "$@"; else compdef _bsvc bsvc; fi`,
  fish: `# bsvc completion for fish
function __bsvc_words
    set -l before (string join \\n -- (commandline -opc)[2..-1] | string collect)
    set -l current (commandline -ct)
    set -l found (bsvc completion words --no-input -- "$before" "$current" 2>/dev/null)
    if test -n "$found[1]"
        printf '%s\\n' $found
    else
        __fish_complete_path "$current"
    end
end
complete -c bsvc -f -a '(__bsvc_words)'`,
};
const GLOBAL_OPTIONS = ['--json', '--quiet', '--no-color', '--no-input', '--data-dir', '--env-file', '--help'];

/** The command that prints completion scripts for `commands`; it is handed them because it is one of them itself. */
export function createCompletion(commands: readonly CommandNode[]): LoadedCommand {
  return defineCommand({
    examples: [
      'source <(bsvc completion bash)',
      'bsvc completion zsh > ~/.zfunc/_bsvc',
      'bsvc completion fish > ~/.config/fish/completions/bsvc.fish',
    ],
    details:
      'The scripts complete commands, options and the names of projects, collections and operators; they ask for them by "bsvc completion words".',
    parameters: {
      shell: argument('shell', 'bash, zsh or fish'),
      before: optionalArgument('before', 'for the scripts: the words before the one to complete, a line each'),
      current: optionalArgument('current', 'for the scripts: the beginning of the word'),
    },
    async run(context, { shell, before = '', current = '' }) {
      if (shell === 'words') {
        const offered = await listOffered(context, commands, before.split('\n'), current.startsWith('-'));
        const words = offered.filter((word) => word.startsWith(current));
        return { json: words, quiet: words, text: () => words.join('\n') };
      }
      const script = Object.hasOwn(SCRIPTS, shell) ? SCRIPTS[shell] : undefined;
      if (!script) throw new UsageError(`There is no completion for "${shell}"; choose one of bash, zsh, fish.`);
      return { json: { shell, script }, quiet: script, text: () => script };
    },
  });
}

/** The words that can come after others. */
async function listOffered(
  context: Context,
  commands: readonly CommandNode[],
  before: readonly string[],
  isOption: boolean,
): Promise<string[]> {
  let node: CommandNode | undefined;
  let nodes = commands;
  let [project, last, hasArgument] = [undefined as string | undefined, '', false];
  for (const word of before) {
    if (last === '--project') project = word;
    const next = nodes.find(({ name }) => name === word);
    if (next) [node, nodes] = [next, next.commands ?? []];
    else if (!word.startsWith('-') && !last.startsWith('--')) hasArgument = true;
    last = word;
  }
  if (last === '--project') return listNames(context, 'project', project);
  const parameters = Object.values((await node?.load?.())?.default.parameters ?? {});
  if (isOption) {
    const options = parameters.flatMap(({ kind, flags }) => {
      if (kind === 'argument') return [];
      return kind === 'secret' ? [`--${flags}-stdin`, `--${flags}-env`] : [/--[\w-]+/.exec(flags)![0]];
    });
    return [...options, ...GLOBAL_OPTIONS];
  }
  const first = parameters.find(({ kind }) => kind === 'argument')?.flags;
  if (hasArgument || !first || node?.name === 'add' || node?.name === 'create') return nodes.map(({ name }) => name);
  return first === 'shell' ? Object.keys(SCRIPTS) : listNames(context, first, project);
}

/** What an argument of this name may be, as the store knows it. */
async function listNames(context: Context, argument: string, named: string | undefined): Promise<string[]> {
  if (argument === 'project') return (await listProjects(await context.app())).map(({ name }) => name);
  if (argument === 'operator') return (await listOperators(await context.app())).map(({ email }) => email);
  if (argument !== 'collection') return [];
  const { app, project } = await chooseProject(context, named);
  return (await listCollections(app, project._id)).map(({ name }) => name);
}
