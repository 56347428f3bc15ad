import { useState } from 'preact/hooks';
import { addressOf, prepare, send } from '../api.js';
import { below, type Address } from '../api-paths.js';
import type { ApiSchemas } from '../api-routes.js';
import { invalidate, useLoad } from '../load.js';
import { Dialog, say, ErrorNote, useAction } from '../parts/basics.js';
import { Commands } from '../parts/commands.js';
import { Confirm } from '../parts/confirm.js';
import { CrudScreen, opens } from '../parts/crud-screen.js';
import { Field, Form, TextArea, useForm } from '../parts/form.js';
import { goTo, linkHere, place } from '../routes.js';
import { mayChange } from '../session.js';

type Base = Address<'/api/projects/{projectId}/mail/templates'>;
type Template = ApiSchemas['UsedTemplate'];

/** `name` of the address: no template may be called so. */
const NEW = ':new';

/** Templates of a project's mails, and the service's own that they override. */
export function Templates({ base }: { base: Base }) {
  const open = place.value.query.get('template');
  const close = (): void => goTo(linkHere({ template: null }));
  return (
    <>
      <CrudScreen
        title="Templates"
        isSection
        list={useLoad(base)}
        keyOf={({ name, scope }) => `${scope} ${name}`}
        empty="No templates."
        columns={[
          { name: 'Name', show: ({ name }) => opens(name, name, 'template') },
          { name: 'Of', show: ({ scope }) => (scope === 'system' ? 'the service' : 'the project') },
          { name: 'Subject', show: ({ subject }) => subject },
        ]}
      />
      {mayChange.value && (
        <p class="row">
          <a href={linkHere({ template: NEW })}>New template…</a>
        </p>
      )}
      {open === NEW && mayChange.value && (
        <Dialog title="New template" onClose={close} wide>
          <Editor base={base} stored={null} onDone={close} />
        </Dialog>
      )}
      {open !== null && open !== NEW && <OneTemplate key={open} base={base} name={open} onClose={close} />}
    </>
  );
}

function OneTemplate({ base, name, onClose }: { base: Base; name: string; onClose: () => void }) {
  const path = below(base, '/{name}', { name });
  const { data, error, reload } = useLoad(path);
  return (
    <Dialog title={`Template ${name}`} onClose={onClose} wide>
      <ErrorNote error={error} onRetry={reload} />
      {data && (mayChange.value ? <Editor base={base} stored={data} onDone={onClose} /> : <Shown stored={data} />)}
      {data?.html !== undefined && (
        <p>
          <a href={addressOf(below(path, '/preview'))} target="_blank" rel="noopener noreferrer">
            Show HTML source
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

function Editor({ base, stored, onDone }: { base: Base; stored: Template | null; onDone: () => void }) {
  const form = useForm({
    name: stored?.name ?? '',
    subject: stored?.subject ?? '',
    html: stored?.html ?? '',
    text: stored?.text ?? '',
  });
  const { name, subject, html, text } = form.values;
  const [removing, setRemoving] = useState(false);
  const path = below(base, '/{name}', { name: name.trim() });
  const storing = prepare('PUT', path, {
    body: { subject, ...(html !== '' && { html }), ...(text !== '' && { text }) },
  });
  const removal = prepare('DELETE', path);
  const [busy, save, refused] = useAction(async () => {
    await send(storing);
    say('Template stored');
    onDone();
    invalidate(path);
  });
  const isOwn = stored?.scope === 'project';
  return (
    <>
      {stored?.scope === 'system' && <p class="muted">The service’s own: stored, it is the project’s instead.</p>}
      <Form onSubmit={() => void save()}>
        {!stored && <Field label="Name" required {...form.at('name')} />}
        <Field label="Subject" required {...form.at('subject')} />
        <TextArea label="Text" {...form.at('text')} />
        <TextArea label="HTML" {...form.at('html')} />
        <p class="muted">
          <code>{'{{name}}'}</code> is replaced by a value of the email.
        </p>
        <ErrorNote error={refused} />
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
      <Commands of={[storing, ...(isOwn ? [removal] : [])]} />
      {removing && (
        <Confirm
          title="Remove the template"
          text="This permanently deletes the template. A built-in template of the same name is used again."
          name={name}
          request={removal}
          done="The template is removed"
          onClose={() => setRemoving(false)}
          onDone={onDone}
        />
      )}
    </>
  );
}
