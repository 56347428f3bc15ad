import { execFileSync } from 'node:child_process';
import { basename } from 'node:path';
import type { App } from '../../src/app.js';
import { checkProjectName, createProject, type CreatedProject } from '../../src/features/projects/create-project.js';
import { quoteShell } from '../../src/exchange/shell-word.js';
import type { Context } from '../shell/context.js';

const NOBODY = 'no terminal to ask at; create one with "bsvc project create"';

/** Asks a person at a terminal whether to create the first project of an empty store; null when none was made. */
export async function createFirstProject({ ask, io }: Context, app: App): Promise<CreatedProject | null> {
  if (!ask.possible || !isInForeground()) return null;
  if (!(await ask.yes('There is no project yet. Create the first one now?', NOBODY, true))) return null;
  const name = await ask.text('Name of the project:', NOBODY, { default: nameAfter(io.cwd), check: whatIsWrong });
  return createProject(app, { name, ifNotExists: true });
}

/** The name of a project whose files are in a folder. */
export function nameAfter(folder: string): string {
  const name = basename(folder);
  return whatIsWrong(name) === true ? name : 'app';
}

function whatIsWrong(name: string): true | string {
  try {
    checkProjectName(name);
    return true;
  } catch (error) {
    return (error as Error).message;
  }
}

/** The system stops a process in the background that reads from its terminal: `bsvc serve &` is to serve. */
function isInForeground(): boolean {
  try {
    const words = ['-o', 'pgid=,tpgid=', '-p', String(process.pid)];
    const [own, foreground] = execFileSync('ps', words, { encoding: 'utf8' }).trim().split(/\s+/);
    return own === foreground;
  } catch {
    return false;
  }
}

/** The commands that come next. */
export function presentFirstProject({ project: { name }, keys }: CreatedProject, url: string): string[] {
  if (!keys) return [];
  const project = quoteShell(name);
  return [
    '',
    `Project ${name} was made.`,
    `  publishable key  ${keys.publishable}`,
    `  secret key       ${keys.secret}`,
    'The keys are shown this once. Next, in another terminal, with the same data directory:',
    `  bsvc collection add posts --project ${project} --field title:String! --public`,
    `  bsvc data insert posts '{"title":"Hello"}' --project ${project}`,
    `  curl -H 'x-api-key: ${keys.publishable}' '${url}/api/data/posts'`,
  ];
}
