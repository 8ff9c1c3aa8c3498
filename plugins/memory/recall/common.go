package recall

// isTalk reports whether a folded word belongs to talk rather than to a subject: the
// function words of six languages, and what people say to an assistant around what
// they want. They are words of talk in whatever language they occur. The names of
// things that developers speak of are left out: go, name, test, work, start.
//
// This is no list of stop words. Its words are indexed and searched for, with the
// weight of a word that three in ten texts have; they are no evidence of their own.
func isTalk(w string) bool {
	return isEnglishTalk(w) || isGermanTalk(w) || isFrenchTalk(w) || isSpanishTalk(w) || isAsianTalk(w)
}

// isEnglishTalk is isTalk for English.
func isEnglishTalk(w string) bool {
	switch w {
	case "a", "about", "after", "again", "all", "also", "always", "am", "an", "and", "any", "anything", "are", "as", "at",
		"be", "because", "been", "before", "being", "both", "but", "by", "can", "cannot", "cant", "come", "could", "did",
		"didnt", "do", "does", "doesnt", "done", "dont", "down", "each", "else", "even", "ever", "every", "everything",
		"few", "find", "first", "for", "from", "get", "give", "good", "got", "had", "has", "have", "he", "hello",
		"help", "her", "here", "hi", "him", "his", "how", "i", "if", "im", "in", "instead", "into", "is", "isnt", "it",
		"its", "just", "know", "last", "let", "lets", "like", "ll", "look", "made", "make", "many", "may", "maybe", "me",
		"might", "mine", "more", "most", "much", "must", "my", "need", "never", "new", "no", "not", "nothing", "now", "of",
		"off", "ok", "okay", "on", "once", "one", "only", "or", "other", "our", "out", "over", "own", "please", "put",
		"quite", "rather", "re", "really", "right", "s", "said", "same", "say", "see", "shall", "she", "should", "show",
		"since", "so", "some", "something", "still", "such", "sure", "take", "tell", "than", "thank", "thanks", "that",
		"thats", "the", "their", "them", "then", "there", "these", "they", "thing", "things", "think", "this", "those",
		"through", "till", "to", "too", "try", "two", "under", "until", "up", "us", "use", "very", "want", "was", "way",
		"we", "well", "were", "what", "whats", "when", "where", "which", "while", "who", "whose", "why", "will", "with",
		"without", "wont", "word", "words", "would", "yes", "yet", "you", "your":
		return true
	}
	return false
}

// isGermanTalk is isTalk for German, less what English has too.
func isGermanTalk(w string) bool {
	switch w {
	case "aber", "alle", "alles", "als", "auch", "auf", "aus", "bei", "beim", "bin", "bis", "bist", "bitte", "da",
		"damit", "danke", "dann", "das", "dass", "dein", "deine", "dem", "den", "denn", "der", "des", "dich", "die",
		"diese", "diesem", "diesen", "dieser", "dieses", "dir", "doch", "du", "durch", "ein", "eine", "einem", "einen",
		"einer", "eines", "er", "es", "etwas", "fur", "gegen", "geht", "gibt", "gut", "guten", "habe", "haben", "hallo",
		"hat", "heute", "hier", "ich", "ihm", "ihn", "ihr", "ihre", "immer", "ins", "ist", "ja", "jede", "jeden",
		"jeder", "jetzt", "kann", "kein", "keine", "konnen", "konnte", "mach", "machen", "macht", "mal", "man", "mehr",
		"mein", "meine", "mich", "mir", "mit", "muss", "mussen", "nach", "nein", "nicht", "nichts", "noch", "nur", "ob",
		"oder", "ohne", "schon", "sehr", "sein", "seine", "sich", "sie", "sind", "soll", "sollen", "uber", "um", "und",
		"uns", "unser", "unsere", "unter", "viel", "viele", "vielen", "vom", "von", "vor", "wann", "war", "warum",
		"weil", "welche", "welchem", "welchen", "welcher", "welches", "wenn", "wer", "werden", "wie", "wieder", "wir",
		"wird", "wo", "wurde", "zu", "zum", "zur", "zwischen":
		return true
	}
	return false
}

// isFrenchTalk is isTalk for French, less what is in the lists before.
func isFrenchTalk(w string) bool {
	switch w {
	case "ai", "au", "aussi", "autre", "aux", "avec", "avez", "avons", "beaucoup", "bien", "bonjour", "ca", "car",
		"ce", "cela", "ces", "cette", "chaque", "combien", "comme", "comment", "d", "dans", "de", "deux", "dois", "doit",
		"donc", "elle", "elles", "en", "encore", "entre", "est", "et", "etre", "eux", "fait", "faire", "faut",
		"ici", "il", "ils", "j", "jamais", "je", "l", "la", "le", "les", "leur", "leurs", "lui", "m", "ma", "mais",
		"meme", "merci", "mes", "moi", "mon", "n", "ne", "non", "nos", "notre", "nous", "ont", "ou", "oui", "par",
		"pas", "peu", "peut", "peux", "plus", "pour", "pourquoi", "puis", "qu", "quand", "que", "quel", "quelle",
		"quelles", "quels", "qui", "quoi", "sa", "sans", "se", "ses", "si", "sommes", "son", "sont", "sous", "sur", "t",
		"ta", "te", "tes", "toi", "ton", "toujours", "tous", "tout", "toute", "toutes", "tres", "trop", "tu", "un", "une",
		"va", "veux", "voici", "vos", "votre", "vous", "y":
		return true
	}
	return false
}

// isSpanishTalk is isTalk for Spanish, less what is in the lists before.
func isSpanishTalk(w string) bool {
	switch w {
	case "ahora", "al", "algo", "antes", "aqui", "asi", "aunque", "bueno", "cada", "como", "con", "cual", "cuales",
		"cuando", "cuanta", "cuantas", "cuanto", "cuantos", "del", "desde", "despues", "donde", "dos", "el", "ella",
		"ellos", "entonces", "era", "eres", "esa", "ese", "eso", "esta", "estan", "estar", "estas", "este", "esto",
		"estos", "estoy", "favor", "fue", "gracias", "ha", "hace", "hacer", "haces", "han", "hasta", "hay", "hola", "hoy",
		"las", "lo", "los", "mas", "mi", "mis", "mucho", "muy", "nada", "ni", "nosotros", "nuestra", "nuestro", "o",
		"otra", "otro", "para", "pero", "por", "porque", "puede", "puedes", "puedo", "quien", "quiero", "sea", "segun",
		"ser", "sin", "sobre", "solo", "soy", "su", "sus", "tambien", "tengo", "tiene", "tienes", "toda", "todo", "todos",
		"tus", "una", "unas", "uno", "unos", "usted", "vamos", "ya", "yo":
		return true
	}
	return false
}

// isAsianTalk is isTalk for the pairs of characters of Chinese, Japanese and Korean.
// For Japanese see isGrammar too.
func isAsianTalk(w string) bool {
	switch w {
	case "什么", "怎么", "么样", "为什", "哪里", "哪个", "哪些", "多少", "几个", "时候", "么时", "请问", "可以", "不能", "能不", "谢谢",
		"你好", "您好", "再见", "你的", "我的", "他的", "我们", "你们", "他们", "自己", "这个", "那个", "这些", "那些", "这样", "这里",
		"一个", "一下", "一些", "没有", "不是", "是不", "就是", "还是", "或者", "但是", "因为", "所以", "如果", "已经", "现在", "今天", "需要", "应该",
		"知道", "告诉", "诉我", "帮我", "给我", "请你", "的话":
		return true
	case "何が", "何で", "何を", "何か", "誰が", "今日", "私の", "私は", "教え", "思い", "お願", "願い", "下さ":
		return true
	case "무엇", "언제", "어디", "누가", "어떻", "떻게", "왜", "얼마", "우리", "니다", "습니", "합니", "입니", "세요", "하세", "해요",
		"나요", "하나", "까요", "는데", "에서", "으로", "감사":
		return true
	}
	return false
}

// isGrammar reports whether a pair of characters is of hiragana, which write the
// grammar of Japanese: endings, particles and forms of politeness.
func isGrammar(pair string) bool {
	for _, c := range pair {
		if c < 0x3041 || c > 0x309F {
			return false
		}
	}
	return true
}
