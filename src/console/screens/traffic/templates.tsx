import { useState } from 'preact/hooks';
import { addressOf, call } from '../../api.js';
import { below, type Address } from '../../api-paths.js';
import type { ApiSchemas } from '../../api-routes.js';
import { useLoad } from '../../load.js';
import { Dialog, say, Trouble, useAction } from '../../parts/basics.js';
import { Commands, ofProject, quote } from '../../parts/commands.js';
import { Confirm } from '../../parts/confirm.js';
import { Field, Form, TextArea } from '../../parts/form.js';
import { List } from '../../parts/table.js';
import { goTo, linkHere, place } from '../../routes.js';
import { mayChange } from '../../session.js';

type Template = ApiSchemas['UsedTemplate'];

/** `name` of the address: no template may be called so. */
const NEW = ':new';

/** Templates of a project's mails, and the service's own that they override. */
export function Templates({ base }: { base: Address<'/api/projects/{projectId}/mail/templates'> }) {
  const list = useLoad(base);
  const { reload } = list;
  const open = place.value.query.get('template');
  const close = (): void => goTo(linkHere({ template: null }));
  const shared = {
    base,
    onClose: close,
    onChange: () => {
      reload();
      close();
    },
  };
  return (
    <>
      <h2>Templates</h2>
      <List
        label="Templates"
        of={list}
        keyOf={({ name, scope }) => `${scope} ${name}`}
        empty="No templates."
        columns={[
          {
            name: 'Name',
            show: ({ name }) => (
              <a class="opens" href={linkHere({ template: name })}>
                {name}
              </a>
            ),
          },
          { name: 'Of', show: ({ scope }) => (scope === 'system' ? 'the service' : 'the project') },
          { name: 'Subject', show: ({ subject }) => subject },
        ]}
      />
      {mayChange.value && (
        <p class="row">
          <a href={linkHere({ template: NEW })}>New template…</a>
        </p>
      )}
      <Commands cli={`bsvc mail template list ${ofProject()}`} path={base} />
      {open === NEW && mayChange.value && (
        <Dialog title="New template" onClose={close} wide>
          <Editor {...shared} stored={null} />
        </Dialog>
      )}
      {open !== null && open !== NEW && <OneTemplate key={open} {...shared} name={open} />}
    </>
  );
}

interface Shared {
  base: Address<'/api/projects/{projectId}/mail/templates'>;
  onClose: () => void;
  onChange: () => void;
}

function OneTemplate({ name, ...shared }: Shared & { name: string }) {
  const path = below(shared.base, '/{name}', { name });
  const { data, error, reload } = useLoad(path);
  return (
    <Dialog title={`Template ${name}`} onClose={shared.onClose} wide>
      <Trouble error={error} onRetry={reload} />
      {data && (mayChange.value ? <Editor {...shared} stored={data} /> : <Shown stored={data} />)}
      {data?.html !== undefined && (
        <p>
          <a href={addressOf(below(path, '/preview'))} target="_blank" rel="noopener noreferrer">
            Look at the HTML as it is stored
          </a>
        </p>
      )}
    </Dialog>
  );
}

function Shown({ stored: { subject, html, text } }: { stored: Template }) {
  return (
    <>
      <p>
        <b>{subject}</b>
      </p>
      {text !== undefined && <pre tabIndex={0}>{text}</pre>}
      {html !== undefined && <pre tabIndex={0}>{html}</pre>}
    </>
  );
}

function Editor({ base, stored, onChange }: Shared & { stored: Template | null }) {
  const [name, setName] = useState(stored?.name ?? '');
  const [subject, setSubject] = useState(stored?.subject ?? '');
  const [html, setHtml] = useState(stored?.html ?? '');
  const [text, setText] = useState(stored?.text ?? '');
  const [removing, setRemoving] = useState(false);
  const path = below(base, '/{name}', { name: name.trim() });
  const body = { subject, ...(html !== '' && { html }), ...(text !== '' && { text }) };
  const [busy, save, refused] = useAction(async () => {
    await call('PUT', path, { body });
    say('Template stored');
    onChange();
  });
  const isOwn = stored?.scope === 'project';
  const files = [html !== '' && ' --html mail.html', text !== '' && ' --text mail.txt'].filter(Boolean).join('');
  const cli = (words: string): string => `bsvc mail template ${words} ${quote(name || 'welcome')} ${ofProject()}`;
  return (
    <>
      {stored?.scope === 'system' && <p class="muted">The service’s own: stored, it is the project’s instead.</p>}
      <Form onSubmit={() => void save()}>
        {!stored && <Field label="Name" required autocomplete="off" value={name} onText={setName} />}
        <Field label="Subject" required autocomplete="off" value={subject} onText={setSubject} />
        <TextArea label="Text" value={text} onText={setText} />
        <TextArea label="HTML" value={html} onText={setHtml} />
        <p class="muted">
          <code>{'{{name}}'}</code> stands for a value of the mail.
        </p>
        <Trouble error={refused} />
        <p class="row">
          <button class="primary" disabled={busy}>
            Store
          </button>
          {isOwn && (
            <button type="button" class="danger" onClick={() => setRemoving(true)}>
              Remove…
            </button>
          )}
        </p>
      </Form>
      <Commands
        name="Store"
        cli={`${cli('set')} --subject ${quote(subject)}${files}`}
        method="PUT"
        path={path}
        body={body}
        more={isOwn ? [{ name: 'Remove', cli: cli('remove'), method: 'DELETE', path }] : []}
      />
      {removing && (
        <Confirm
          title="Remove the template"
          text="For good. One of the service’s own of that name is used again."
          name={name}
          action="Remove the template"
          onClose={() => setRemoving(false)}
          onConfirm={async () => {
            await call('DELETE', path);
            say('The template is removed');
            onChange();
          }}
        />
      )}
    </>
  );
}
