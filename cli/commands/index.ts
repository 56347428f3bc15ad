import type { CommandEntry, CommandNode } from '../shell/command.js';

export const ROOT_EXAMPLES = [
  'bsvc serve --demo',
  'bsvc project create shop',
  'bsvc collection add posts --project shop --field title:String!',
];

const command = (name: string, summary: string, load: CommandEntry['load']): CommandEntry => ({ name, summary, load });

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
      examples: ['bsvc project create shop', 'bsvc project list', 'bsvc project update shop --plan pro'],
      commands: [
        command('create', 'create a project with its first keys', () => import('./project/create.js')),
        command('list', 'list projects', () => import('./project/list.js')),
        command('show', 'show one project', () => import('./project/show.js')),
        command('update', 'change name, plan, allowed domains or limits', () => import('./project/update.js')),
        command('export', 'write a project as a bsvc.yaml file', () => import('./project/export.js')),
        command('brief', 'show a project on one page, for coding agents', () => import('./project/brief.js')),
        command('delete', 'delete a project and everything in it', () => import('./project/delete.js')),
        command('usage', 'show the usage of a project’s limits', () => import('./project/usage.js')),
        command('recount', 'recount the usage of quotas', () => import('./project/recount.js')),
      ],
    },
    {
      name: 'key',
      summary: 'API keys of a project',
      examples: ['bsvc key list --project shop', 'bsvc key rotate --project shop --type secret --grace 24h'],
      commands: [
        command('list', 'list keys by id and last characters', () => import('./key/list.js')),
        command('create', 'create another key, shown once', () => import('./key/create.js')),
        command('rotate', 'create a new key, the old ones expire', () => import('./key/rotate.js')),
        command('revoke', 'revoke a key', () => import('./key/revoke.js')),
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
      examples: [
        'bsvc collection add posts --project shop --field title:String! --field views:Number=0',
        'bsvc collection rls posts --project shop --mode public-read',
        'bsvc collection list --project shop',
      ],
      commands: [
        command('add', 'register a collection', () => import('./collection/add.js')),
        command('list', 'list collections', () => import('./collection/list.js')),
        command('show', 'show fields and rules of a collection', () => import('./collection/show.js')),
        command('edit', 'change fields, indexes and the change log', () => import('./collection/edit.js')),
        command('rls', 'set who may access a collection: RLS or rules', () => import('./collection/rls.js')),
        command('rename', 'rename a collection', () => import('./collection/rename.js')),
        command('drop', 'drop a collection and its documents', () => import('./collection/drop.js')),
      ],
    },
    {
      name: 'schema',
      summary: 'all collections of a project as one file',
      examples: [
        'bsvc schema export --project shop --out schema.json',
        'bsvc schema apply schema.json --project shop --dry-run',
      ],
      commands: [
        command('export', 'write the collections of a project as JSON', () => import('./schema/export.js')),
        command('apply', 'make the collections of a project match a file', () => import('./schema/apply.js')),
      ],
    },
    {
      name: 'data',
      summary: 'documents: bulk import, export, queries',
      examples: [
        'bsvc data import posts posts.ndjson --project shop',
        'bsvc data query posts --project shop --filter status=live --limit 5',
      ],
      commands: [
        command('import', 'import documents from a file or another service', () => import('./data/import.js')),
        command('export', 'export documents as NDJSON, JSON or CSV', () => import('./data/export.js')),
        command('query', 'list, aggregate or watch documents', () => import('./data/query.js')),
        command('insert', 'insert a document', () => import('./data/insert.js')),
        command('update', 'change fields of one document, or of all that match', () => import('./data/update.js')),
        command('delete', 'move documents to the trash, or restore one', () => import('./data/delete.js')),
        command('batch', 'run several writes as one transaction', () => import('./data/batch.js')),
      ],
    },
    {
      name: 'file',
      summary: 'uploaded files',
      examples: ['bsvc file list --project shop'],
      commands: [
        command('list', 'list files', () => import('./file/list.js')),
        command('delete', 'delete a file', () => import('./file/delete.js')),
      ],
    },
    {
      name: 'hook',
      summary: 'hooks: your code that runs before writes and sign-ins',
      examples: [
        'bsvc hook add orders.create --project shop --url https://example.com/orders',
        'bsvc hook list --project shop',
        'bsvc hook test orders.create --project shop',
      ],
      commands: [
        command('add', 'call your code before an event', () => import('./hook/add.js')),
        command('list', 'list hooks with their last calls', () => import('./hook/list.js')),
        command('remove', 'remove a hook', () => import('./hook/remove.js')),
        command('test', 'call a hook once and show the response', () => import('./hook/test.js')),
      ],
    },
    {
      name: 'webhook',
      summary: 'webhooks: notify other services of changed documents',
      examples: [
        'bsvc webhook add --project shop --url https://example.com/hooks --events posts.insert',
        'bsvc webhook list --project shop',
        'bsvc webhook deliveries 665f1c2e9b1d8a0012ab34cd --project shop --state failed',
      ],
      commands: [
        command('add', 'register a webhook, shows its secret once', () => import('./webhook/add.js')),
        command('list', 'list webhooks', () => import('./webhook/list.js')),
        command('edit', 'change address or events, enable, disable', () => import('./webhook/edit.js')),
        command('remove', 'remove a webhook', () => import('./webhook/remove.js')),
        command('test', 'send test.ping and show the response', () => import('./webhook/test.js')),
        command('deliveries', 'list deliveries and attempts', () => import('./webhook/deliveries.js')),
        command('replay', 'send a delivery again', () => import('./webhook/replay.js')),
        command(
          'rotate-secret',
          'create a new secret, the old one expires',
          () => import('./webhook/rotate-secret.js'),
        ),
      ],
    },
    command('generate', 'write types, API document or client for an app', () => import('./generate.js')),
    {
      name: 'agent',
      summary: 'files that tell coding agents how to build on bsvc',
      examples: ['bsvc agent install'],
      commands: [
        command('install', 'write AGENTS.md and a skill into an application', () => import('./agent/install.js')),
      ],
    },
  ],
  Access: [
    {
      name: 'rules',
      summary: 'access rules: check them, explain them, test them',
      examples: ['bsvc rules check --project board --data', 'bsvc rules test rules.test.yaml'],
      commands: [
        command('check', 'check rules, or explain them for one user', () => import('./rules/check.js')),
        command('test', 'test the rules of a bsvc.yaml with the cases of a file', () => import('./rules/test.js')),
      ],
    },
    {
      name: 'operator',
      summary: 'operators: people who use the console',
      examples: [
        'bsvc operator add --email ann@example.com --role viewer',
        'bsvc operator list',
        'bsvc operator token ann@example.com --quiet',
      ],
      commands: [
        command('add', 'add an operator with a password', () => import('./operator/add.js')),
        command('list', 'list operators', () => import('./operator/list.js')),
        command('token', 'create a token, list or revoke sessions and tokens', () => import('./operator/token.js')),
        command(
          'set-password',
          'set a new password, sessions and tokens end',
          () => import('./operator/set-password.js'),
        ),
        command('remove', 'remove an operator', () => import('./operator/remove.js')),
      ],
    },
    {
      name: 'secrets',
      summary: 'keys that encrypt stored secrets and sign tokens',
      examples: ['bsvc secrets rotate', 'bsvc secrets rotate --tokens --project shop'],
      commands: [command('rotate', 'encrypt stored secrets with a new key', () => import('./secrets/rotate.js'))],
    },
  ],
  Users: [
    {
      name: 'user',
      summary: 'end users of a project',
      examples: [
        'bsvc user create --project shop --email ann@example.com',
        'bsvc user list --project shop',
        'bsvc user disable ann@example.com --project shop',
      ],
      commands: [
        command('list', 'list users, or show one with roles, MFA and identities', () => import('./user/list.js')),
        command('create', 'create an account, or invite a user by email', () => import('./user/create.js')),
        command('update', 'change roles, enable the account, reset MFA', () => import('./user/update.js')),
        command('import', 'import users of another service', () => import('./user/import.js')),
        command('set-password', 'set a user’s password', () => import('./user/set-password.js')),
        command('disable', 'disable an account, its sessions end', () => import('./user/disable.js')),
        command('sessions', 'list or revoke a user’s sessions', () => import('./user/sessions.js')),
        command('delete', 'delete an account, with --erase all data of the user', () => import('./user/delete.js')),
        command('social', 'set up sign-in with Google, GitHub or another', () => import('./user/social.js')),
      ],
    },
    {
      name: 'mail',
      summary: 'mail of a project: test, logs, outbox, templates',
      examples: [
        'bsvc mail test --project shop --to me@example.com',
        'bsvc mail outbox',
        'bsvc mail template list --project shop',
      ],
      commands: [
        command('test', 'send a test mail', () => import('./mail/test.js')),
        command('logs', 'list the latest mails', () => import('./mail/logs.js')),
        command('outbox', 'show mails that were stored instead of sent', () => import('./mail/outbox.js')),
        {
          name: 'template',
          summary: 'templates of a project',
          examples: ['bsvc mail template set welcome --project shop --subject "Hello {{name}}" --text welcome.txt'],
          commands: [
            command('list', 'list templates, or show one', () => import('./mail/template/list.js')),
            command('set', 'store or replace a template', () => import('./mail/template/set.js')),
            command('remove', 'remove a template of the project', () => import('./mail/template/remove.js')),
          ],
        },
      ],
    },
    {
      name: 'byok',
      summary: 'a project’s own mail and storage credentials',
      examples: ['bsvc byok set --project shop --mail-key-stdin < key.txt', 'bsvc byok show --project shop'],
      commands: [
        command('set', 'store the project’s own mail provider key', () => import('./byok/set.js')),
        command('show', 'show the credentials, masked', () => import('./byok/show.js')),
        command('clear', 'remove the credentials', () => import('./byok/clear.js')),
        {
          name: 'bucket',
          summary: 'a project’s own bucket for files',
          examples: ['bsvc byok bucket show --project shop', 'bsvc byok bucket show --project shop --check'],
          commands: [
            command('set', 'store new files in the project’s own bucket', () => import('./byok/bucket/set.js')),
            command('show', 'show or check the bucket, set its CORS rules', () => import('./byok/bucket/show.js')),
            command('clear', 'remove the bucket', () => import('./byok/bucket/clear.js')),
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
      examples: ['bsvc service install --print', 'bsvc service install --worker'],
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
