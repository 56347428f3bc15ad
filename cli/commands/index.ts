import type { CommandEntry, CommandNode, LoadedCommand } from '../shell/command.js';

export const ROOT_EXAMPLES = [
  'bsvc serve --demo',
  'bsvc project create shop',
  'bsvc collection add posts --project shop --field title:String!',
];

/** A command that a module has alone. */
const command = (name: string, summary: string, load: CommandEntry['load']): CommandEntry => ({ name, summary, load });
/** The same for the commands of one module, by their names in it. */
const commandsOf =
  <Name extends string>(load: () => Promise<{ default: Record<Name, LoadedCommand> }>) =>
  (name: Name, summary: string): CommandEntry =>
    command(name.split(' ').at(-1)!, summary, async () => ({ default: (await load()).default[name] }));

const byokCommand = commandsOf(() => import('./byok.js'));
const collectionCommand = commandsOf(() => import('./collection.js'));
const hookCommand = commandsOf(() => import('./hook.js'));
const keyCommand = commandsOf(() => import('./key.js'));
const mailCommand = commandsOf(() => import('./mail.js'));
const operatorCommand = commandsOf(() => import('./operator.js'));
const projectCommand = commandsOf(() => import('./project.js'));
const rulesCommand = commandsOf(() => import('./rules.js'));
const userCommand = commandsOf(() => import('./user.js'));
const webhookCommand = commandsOf(() => import('./webhook.js'));
const writeCommand = commandsOf(() => import('./data/write.js'));

/**
 * Every command of bsvc, in the groups of `bsvc --help`. Modules are imported when they run, so that it starts at once.
 */
export const GROUPS: Readonly<Record<string, readonly CommandNode[]>> = {
  Start: [
    command('serve', 'run the API server, with the background worker inside', () => import('./serve.js')),
    command('init', 'write a bsvc.yaml to start from, and a page on request', () => import('./init.js')),
    {
      name: 'project',
      summary: 'projects: one per application',
      commands: [
        projectCommand('create', 'create a project with its first keys'),
        projectCommand('list', 'list projects'),
        projectCommand('show', 'show settings, usage and limits of a project'),
        projectCommand('update', 'change name, plan, allowed domains or limits'),
        projectCommand('export', 'write a project as a bsvc.yaml file'),
        projectCommand('brief', 'show a project on one page, for coding agents'),
        projectCommand('delete', 'delete a project and everything in it'),
      ],
    },
    {
      name: 'key',
      summary: 'API keys of a project',
      commands: [
        keyCommand('list', 'list keys by id and last characters'),
        keyCommand('create', 'create another key, shown once'),
        keyCommand('rotate', 'create a new key, the old ones expire'),
        keyCommand('revoke', 'revoke a key'),
      ],
    },
    command('apply', 'apply a bsvc.yaml file', () => import('./apply.js')),
    command('console', 'print a one-time sign-in link to the console', () => import('./console.js')),
    command('completion', 'print a completion script for bash, zsh or fish', async () => ({
      default: (await import('./completion.js')).createCompletion(COMMANDS),
    })),
  ],
  Data: [
    {
      name: 'collection',
      summary: 'collections of a project: fields, rules, access',
      commands: [
        command('add', 'register a collection', () => import('./collection/add.js')),
        collectionCommand('list', 'list collections'),
        collectionCommand('show', 'show fields and rules of a collection'),
        command('edit', 'change name, fields, indexes and the change log', () => import('./collection/edit.js')),
        collectionCommand('rls', 'set who may access a collection: RLS or rules'),
        collectionCommand('drop', 'drop a collection and its documents'),
      ],
    },
    {
      name: 'data',
      summary: 'documents: bulk import, export, queries',
      commands: [
        command('import', 'import documents or users from a file or another service', () => import('./data/import.js')),
        command('export', 'export documents as NDJSON, JSON or CSV', () => import('./data/export.js')),
        command('query', 'list, aggregate or watch documents', () => import('./data/query.js')),
        writeCommand('insert', 'insert a document'),
        writeCommand('update', 'change fields of one document, or of all that match'),
        writeCommand('delete', 'move documents to the trash, or restore one'),
        writeCommand('batch', 'run several writes as one transaction'),
      ],
    },
    command('file', 'list uploaded files, delete one', () => import('./file.js')),
    {
      name: 'hook',
      summary: 'hooks: your code that runs before and after events',
      commands: [
        hookCommand('add', 'call your code at an event'),
        hookCommand('list', 'list hooks with their last calls'),
        hookCommand('remove', 'remove a hook'),
        hookCommand('test', 'call a hook or a schedule once and show the response'),
      ],
    },
    {
      name: 'schedule',
      summary: 'schedules: your code that runs at certain times',
      commands: [
        hookCommand('schedule add', 'call your code at certain times'),
        hookCommand('schedule list', 'list schedules with their last calls'),
        hookCommand('schedule remove', 'remove a schedule'),
      ],
    },
    {
      name: 'webhook',
      summary: 'webhooks: notify other services of changed documents',
      commands: [
        webhookCommand('add', 'register a webhook, shows its secret once'),
        webhookCommand('list', 'list webhooks'),
        webhookCommand('edit', 'change address or events, enable, disable'),
        webhookCommand('remove', 'remove a webhook'),
        webhookCommand('test', 'send test.ping and show the response'),
        webhookCommand('deliveries', 'list deliveries and attempts'),
        webhookCommand('replay', 'send a delivery again'),
        webhookCommand('rotate-secret', 'create a new secret, the old one expires'),
      ],
    },
    command('generate', 'write types, API document or client for an app', () => import('./generate.js')),
    {
      name: 'agent',
      summary: 'files that tell coding agents how to build on bsvc',
      commands: [command('install', 'write AGENTS.md and a skill into an application', () => import('./agent.js'))],
    },
  ],
  Access: [
    {
      name: 'rules',
      summary: 'access rules: check them, explain them, test them',
      commands: [
        rulesCommand('check', 'check the rules of a project or a file'),
        rulesCommand('explain', 'explain what rules come to for one user'),
        rulesCommand('test', 'test the rules of a bsvc.yaml with the cases of a file'),
      ],
    },
    {
      name: 'operator',
      summary: 'operators: people who use the console',
      commands: [
        operatorCommand('add', 'add an operator, or set the password of one'),
        operatorCommand('list', 'list operators'),
        operatorCommand('token', 'create a token, list or revoke sessions and tokens'),
        operatorCommand('remove', 'remove an operator'),
      ],
    },
    {
      name: 'secrets',
      summary: 'keys that encrypt stored secrets and sign tokens',
      commands: [command('rotate', 'encrypt stored secrets with a new key', () => import('./secrets/rotate.js'))],
    },
  ],
  Users: [
    {
      name: 'user',
      summary: 'end users of a project',
      commands: [
        userCommand('list', 'list users, or show one with roles, MFA, identities and sessions'),
        userCommand('create', 'create an account, or invite a user by email'),
        userCommand('update', 'change password or roles, end sessions, disable, reset MFA'),
        userCommand('delete', 'delete an account, with --erase all data of the user'),
        command('social', 'set up sign-in with Google, GitHub or another', () => import('./user/social.js')),
      ],
    },
    {
      name: 'mail',
      summary: 'email of a project: test, logs, outbox, templates',
      commands: [
        mailCommand('test', 'send a test email'),
        mailCommand('logs', 'list the latest emails'),
        mailCommand('outbox', 'show emails that were stored instead of sent'),
        {
          name: 'template',
          summary: 'templates of a project',
          commands: [
            mailCommand('template list', 'list templates, or show one'),
            mailCommand('template set', 'store or replace a template'),
            mailCommand('template remove', 'remove a template of the project'),
          ],
        },
      ],
    },
    {
      name: 'byok',
      summary: 'a project’s own mail and storage credentials',
      commands: [
        byokCommand('set', 'store the project’s own mail provider key'),
        byokCommand('show', 'show the credentials, masked'),
        byokCommand('clear', 'remove the credentials'),
        {
          name: 'bucket',
          summary: 'a project’s own bucket for files',
          commands: [
            byokCommand('bucket set', 'store new files in the project’s own bucket'),
            byokCommand('bucket show', 'show or check the bucket, set its CORS rules'),
            byokCommand('bucket clear', 'remove the bucket'),
          ],
        },
      ],
    },
  ],
  Operate: [
    command('doctor', 'check the installation, repair a damaged database', () => import('./doctor.js')),
    command('settings', 'list every setting, its value and where it came from', () => import('./settings.js')),
    command('worker', 'run background jobs and schedules only', () => import('./worker.js')),
    {
      name: 'service',
      summary: 'run bsvc under systemd',
      commands: [command('install', 'write systemd units for the server', () => import('./service/install.js'))],
    },
    command('migrate', 'run pending migrations, or list them', () => import('./migrate.js')),
    command('backup', 'back up everything, while serving; list backups', () => import('./backup.js')),
    command('restore', 'restore from a backup', () => import('./restore.js')),
    command('move-to', 'copy the embedded database to a MongoDB', () => import('./move-to.js')),
    command('jobs', 'list background jobs, retry failed ones', () => import('./jobs.js')),
    command('audit', 'show the audit log', () => import('./audit.js')),
  ],
};

export const COMMANDS: readonly CommandNode[] = Object.values(GROUPS).flat();
