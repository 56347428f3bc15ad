import { readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { conflict } from '../../src/errors.js';
import { checkProjectName } from '../../src/features/projects/create-project.js';
import { readPackageFile } from '../../src/package.js';
import { DIRECTORY_FOR_ALL, makeDirectory } from '../../src/platform/durable-files.js';
import { quoteShell } from '../../src/exchange/shell-word.js';
import { FOR_ALL, replaceFile } from '../formats/output-file.js';
import { writeClient } from '../formats/write-client.js';
import { nameAfter } from '../serve/create-first-project.js';
import { choice, defineCommand, option, optionalArgument } from '../shell/command.js';
import { UsageError } from '../view/exit.js';

/** What each template has besides the declaration and the settings; npm would not pack a .gitignore. */
const TEMPLATES = {
  react: [
    ...['package.json', 'vite.config.js', 'index.html', 'gitignore', 'src/main.jsx', 'src/account.jsx'],
    ...['src/lists.jsx', 'src/form.jsx', 'src/api.js', 'src/style.css'],
  ],
} as const;
const CLIENT = 'bsvc-client';

export default defineCommand({
  details: [
    'Writes bsvc.yaml, which declares lists that users share, and .env.example. Change both to what you need.',
    '--template react adds a page with these lists, built by Vite, and the client that it uses. Nothing is downloaded: "npm install" does that.',
    'If a file already exists and differs, it stays and nothing is written.',
  ].join('\n'),
  examples: ['bsvc init', 'bsvc init my-app --template react'],
  parameters: {
    folder: optionalArgument('folder', 'folder to write into (default: the current one)'),
    template: choice('--template <template>', 'a page to start from: react', ['react']),
    name: option('--name <name>', 'name of the project (default: the name of the folder)', readName),
  },
  async run(context, { folder = '.', template, name: given }) {
    // Empty, as from a variable that is not set, it would stand for the current folder.
    if (folder === '') throw new UsageError('The name of the folder is empty.');
    const root = resolve(context.io.cwd, folder);
    const name = given ?? nameAfter(root);
    const files = listFiles(name, template);
    const changed: [path: string, text: string][] = [];
    for (const [path, text] of files) if (await differs(join(root, path), path, text)) changed.push([path, text]);
    if (template) {
      await writeClient(context, { out: join(folder, CLIENT), check: false });
    }
    for (const [path, text] of changed) {
      await makeDirectory(dirname(join(root, path)), DIRECTORY_FOR_ALL);
      await replaceFile(join(root, path), text, FOR_ALL);
    }
    const written = [...files.map(([path]) => path), ...(template ? [`${CLIENT}/`] : [])];
    const next = listNext(folder, name, template);
    return {
      json: { project: name, files: written, next: next.map(([command]) => command) },
      quiet: written,
      text: () => {
        const width = Math.max(...next.filter(([, why]) => why !== '').map(([command]) => command.length));
        const lines = next.map(([command, why]) => `  ${why === '' ? command : `${command.padEnd(width)}  # ${why}`}`);
        return [...written.map((path) => `Wrote ${join(folder, path)}`), '', 'Next:', ...lines].join('\n');
      },
    };
  },
});

type Template = keyof typeof TEMPLATES;

/** Paths in the folder and texts. */
function listFiles(name: string, template: Template | undefined): [path: string, text: string][] {
  const read = (...path: string[]): string => readPackageFile('templates', 'init', ...path);
  return [
    // A text of JSON is one of YAML.
    ['bsvc.yaml', read('bsvc.yaml').replace('name: app', () => `name: ${JSON.stringify(name)}`)],
    ['.env.example', read('env.example')],
    ...(template ? TEMPLATES[template] : []).map((path): [string, string] => [
      path === 'gitignore' ? '.gitignore' : path,
      read(template!, path),
    ]),
  ];
}

/** The commands that come next, with what they do where that is not plain. */
function listNext(folder: string, name: string, template: Template | undefined): [command: string, why: string][] {
  const key = `bsvc key create --project ${quoteShell(name)} --type publishable --quiet`;
  return [
    ...(folder === '.' ? [] : [[`cd ${quoteShell(folder)}`, ''] as [string, string]]),
    ['cp .env.example .env', 'settings of the server'],
    ['bsvc serve &', 'at http://localhost:4000'],
    ['bsvc apply --yes', 'creates the project of bsvc.yaml, prints its keys'],
    ...(template
      ? ([
          [`echo "VITE_BSVC_KEY=$(${key})" > .env.local`, ''],
          ['npm install', ''],
          ['npm run dev', 'the page, at http://localhost:5173'],
          ['npm run build', 'then: bsvc serve --public ./dist --spa'],
        ] as [string, string][])
      : []),
  ];
}

/** True if the file is not there; 409 FILE_EXISTS for another one. One that an interrupted run has written is kept. */
async function differs(file: string, path: string, text: string): Promise<boolean> {
  const present = await readFile(file, 'utf8').catch((error: unknown) => {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return null;
    if (code === 'EISDIR') return undefined;
    throw error;
  });
  if (present === null) return true;
  if (present === text) return false;
  throw conflict('FILE_EXISTS', `${path} already exists and differs. Name an empty folder: bsvc init my-app`);
}

function readName(text: string): string {
  checkProjectName(text);
  return text;
}
