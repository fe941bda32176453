// The icons of the page: small SVG pictures in the color of the text. They have no meaning of their own; a button with
// only an icon has a label.

import type { ComponentChildren } from "preact";

function Icon({ children }: { children: ComponentChildren }) {
  return (
    <svg
      class="icon"
      width="18"
      height="18"
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      stroke-width="2"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      {children}
    </svg>
  );
}

export const CheckIcon = () => <Icon><path d="M5 13l4 4L19 7" /></Icon>;
export const CrossIcon = () => <Icon><path d="M6 6l12 12M18 6L6 18" /></Icon>;
export const PlusIcon = () => <Icon><path d="M12 5v14M5 12h14" /></Icon>;
export const MenuIcon = () => <Icon><path d="M4 7h16M4 12h16M4 17h16" /></Icon>;
export const SendIcon = () => <Icon><path d="M5 12h14M13 6l6 6-6 6" /></Icon>;
export const DownIcon = () => <Icon><path d="M12 5v14M6 13l6 6 6-6" /></Icon>;
export const StopIcon = () => <Icon><rect x="7" y="7" width="10" height="10" rx="1" /></Icon>;
export const RetryIcon = () => <Icon><path d="M20 11a8 8 0 1 0-2.3 5.7M20 4v7h-7" /></Icon>;
export const CopyIcon = () => <Icon><rect x="9" y="9" width="11" height="11" rx="2" /><path d="M5 15V5a1 1 0 0 1 1-1h9" /></Icon>;
export const EditIcon = () => <Icon><path d="M4 20h4L19 9l-4-4L4 16z" /></Icon>;
export const TrashIcon = () => <Icon><path d="M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13" /></Icon>;
export const LinkIcon = () => <Icon><path d="M10 14a4 4 0 0 0 6 0l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6 0l-3 3a4 4 0 0 0 6 6l1-1" /></Icon>;
export const PeopleIcon = () => <Icon><circle cx="9" cy="8" r="3.5" /><path d="M3 20a6 6 0 0 1 12 0M16 4.700a3.500 3.500 0 0 1 0 6.600M18 14.500a6 6 0 0 1 3 5.500" /></Icon>;
export const ThumbUpIcon = () => <Icon><path d="M7 11v9H4v-9zM7 11l4-8c1.7 0 2.5 1 2.3 2.6L12.8 9H19a2 2 0 0 1 2 2.4l-1.3 7A2 2 0 0 1 17.7 20H7" /></Icon>;
export const ThumbDownIcon = () => <Icon><path d="M17 13V4h3v9zM17 13l-4 8c-1.7 0-2.5-1-2.3-2.600l.5-3.400H5a2 2 0 0 1-2-2.400l1.3-7A2 2 0 0 1 6.3 4H17" /></Icon>;
export const ClockIcon = () => <Icon><circle cx="12" cy="12" r="8" /><path d="M12 8v4l3 2" /></Icon>;
export const QuestionIcon = () => <Icon><path d="M9 9a3 3 0 1 1 4.5 2.600c-1 .6-1.5 1.2-1.5 2.400M12 18h.01" /></Icon>;
export const RunningIcon = () => <Icon><path d="M12 4a8 8 0 1 0 8 8" /></Icon>;
